expect 2 "$heddle"
complains "usage: heddle VERB"
