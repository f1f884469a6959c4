#include <a.h>
#define LIMIT 3
struct box {
};
int declared(int a);
static char *get(struct box *b,
                 int key)
{
  if (key)
    return call(key);
}
int main(void) {
}
