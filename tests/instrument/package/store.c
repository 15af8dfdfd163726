static int items;
int add_item(int n) {
  items += n;
  return items;
}
