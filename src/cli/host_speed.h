/* How fast this machine's CPUs read its memory: what bounds a program that leaves layers to them. */
#ifndef SPILL_CLI_HOST_SPEED_H
#define SPILL_CLI_HOST_SPEED_H

struct host_speed {
	double rate;      /* GB/s (10^9 bytes a second), all threads together; 0: not measured */
	unsigned threads; /* one a CPU that this process may use, at most 64 */
	unsigned mib;     /* that they read, again and again */
};

/* Reads for about 100 ms, of memory that is given back. Nothing is measured where little memory is available. */
struct host_speed host_speed(void);

#endif
