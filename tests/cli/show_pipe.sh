# A reader that has seen enough is no error, and ends the work.
for i in $(seq 100000); do echo "t0: w x @a.c:$i"; done >long.txt
expect 0 bash -o pipefail -c "'$heddle' show long.txt | head -3"
lines 3
silent
