/* One value that our headers and the vendor's must agree on. */
#ifndef ABI_TABLE_H
#define ABI_TABLE_H

struct abi_value {
	const char *name;
	long long value; /* of a constant; bytes of a type; offset of a member */
	long long extra; /* alignment of a type; bytes of a member */
};

extern const struct abi_value abi_ours[], abi_theirs[];
extern const unsigned abi_ours_count, abi_theirs_count;

#endif
