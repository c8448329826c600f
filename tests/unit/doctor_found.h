/* What the parts of `spill doctor` find, as lines "NAME: OBSERVATION". In place of doctor.c. */
#ifndef DOCTOR_FOUND_H
#define DOCTOR_FOUND_H

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

static char said[8192];
static size_t length;

void doctor_find(enum doctor_finding finding, const char *format, ...)
{
	static const char *const names[] = {
#define FINDING(id, level, area, why, remedy) #id,
#include "findings.def"
	};
	va_list arguments;

	length += (size_t)snprintf(said + length, sizeof(said) - length, "%s: ", names[finding]);
	va_start(arguments, format);
	length += (size_t)vsnprintf(said + length, sizeof(said) - length, format, arguments);
	va_end(arguments);
	length += (size_t)snprintf(said + length, sizeof(said) - length, "\n");
	assert_true(length < sizeof(said));
}

static inline void find_nothing(void)
{
	length = 0;
	said[0] = '\0';
}

#endif
