/* The symbols of Python 3.11, in a library that is loaded late. Its function must not be called. */
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED extern const unsigned long Py_Version;
EXPORTED extern char PyCode_Type, PyUnicode_Type;
EXPORTED void *PyGILState_GetThisThreadState(void);
const unsigned long Py_Version = 0x030b07f0;
char PyCode_Type, PyUnicode_Type;

void *PyGILState_GetThisThreadState(void)
{
	abort();
}
