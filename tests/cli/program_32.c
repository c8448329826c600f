/* A 32-bit program without a libc, which its loader starts as any other: prints "32 bits" and ends with 32. int 0x80 is i386's call. */
static int call(int number, int first, const void *second, int third)
{
	int result;

	__asm__ volatile("int $0x80"
	                 : "=a"(result)
	                 : "0"(number), "b"(first), "c"(second), "d"(third)
	                 : "memory");
	return result;
}

void _start(void);

void _start(void)
{
	call(4, 1, "32 bits\n", 8); /* write */
	call(1, 32, 0, 0);          /* exit */
}
