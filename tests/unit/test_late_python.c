/* Python that was loaded later can be unloaded at any moment. So it is not asked. */
#include "unit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loaded_objects.h"
#include "python_function.h"

TEST(an_interpreter_that_was_loaded_later_is_not_called)
{
	char folder[4096], path[4200], text[64];
	ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	assert_true(length > 0);
	folder[length] = '\0';
	*strrchr(folder, '/') = '\0';
	snprintf(path, sizeof(path), "%s/late_python.so", folder);
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	assert_non_null(library);
	assert_non_null(spill_loaded_objects_function("PyGILState_GetThisThreadState", NULL));
	assert_false(spill_python_function(text, sizeof(text)));
	dlclose(library);
	assert_false(spill_python_function(text, sizeof(text)));
}
