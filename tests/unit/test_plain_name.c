/* Names of C++ functions for people, as plain_name.h says. The symbols are of real libraries. */
#include "unit.h"

#include <string.h>

#include "plain_name.h"

static void expect_name(const char *symbol, const char *expected)
{
	char name[PLAIN_NAME];

	memset(name, 'x', sizeof(name));
	plain_name(symbol, name);
	assert_string_equal(name, expected);
}

TEST(names_of_functions)
{
	expect_name("main", "main");
	expect_name("", "");
	expect_name("_ZN18ggml_cuda_pool_vmm5allocEmPm", "ggml_cuda_pool_vmm::alloc");
	expect_name("_ZL42ggml_backend_cuda_buffer_type_alloc_bufferP24ggml_backend_buffer_typem",
	            "ggml_backend_cuda_buffer_type_alloc_buffer");
	expect_name("_ZNK3c104cuda4implEv", "c10::cuda::impl");
	expect_name("_ZN12_GLOBAL__N_15allocEv", "(anonymous)::alloc");
	expect_name("_ZSt9terminatev", "std::terminate");
	expect_name("_ZNSt6thread4joinEv", "std::thread::join");
	expect_name("_Z13build_grammarB5cxx11v", "build_grammar");
}

TEST(constructors_and_operators)
{
	expect_name("_ZN3foo3barC2Ei", "foo::bar::bar");
	expect_name("_ZN3foo3barD0Ev", "foo::bar::~bar");
	expect_name("_ZN3foo3barclEv", "foo::bar::operator");
}

TEST(arguments_of_templates_are_left_out)
{
	expect_name("_Z13mul_mat_f_idsIfLi64ELi5ELi6EEvPKfS1_", "mul_mat_f_ids");
	expect_name("_ZN6vectorIN3foo3barIiEESaIS2_EE4growEm", "vector::grow");
	expect_name("_Z4callIJiPKcRN3foo3barEEEvT_", "call");
	expect_name("_ZN3foo3barINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEELb1EE3putEv",
	            "foo::bar::put");
	/* Pointers, references and const, and a pack. */
	expect_name("_ZN3fooIPKcRN1a1bEOfE3barEv", "foo::bar");
	expect_name("_ZN3fooIJDpT_EE3barEv", "foo::bar");
	/* An expression, and the type of a function: the name ends there. */
	expect_name("_ZN3fooIXsrT_5valueEE3barEv", "foo…");
	expect_name("_ZNSt8functionIFviEE4callEv", "std::function…");
}

TEST(a_lambda_is_called_like_its_function)
{
	expect_name("_ZZN3foo3barEvENKUlvE_clEv", "foo::bar");
	expect_name("_ZN3foo3barUlvE_clEv", "foo::bar…");
}

TEST(copies_versions_and_other_languages)
{
	expect_name("_ZN3foo3barEv.part.0.cold", "foo::bar");
	expect_name("alloc.constprop.0", "alloc");
	expect_name("cuInit@@VERSION_1", "cuInit");
	expect_name(".hidden", ".hidden");
	expect_name("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
	expect_name("_RNvC7mycrate3foo", "_RNvC7mycrate3foo");
}

TEST(no_name_is_longer_than_promised)
{
	char symbol[4096] = "_ZN", name[PLAIN_NAME];

	for (unsigned i = 0; i < 40; i++)
		strcat(symbol, "8abcdefgh");
	strcat(symbol, "4lastEv");
	plain_name(symbol, name);
	assert_true(strlen(name) < PLAIN_NAME);
	assert_memory_equal(name, "…::abcdefgh::", strlen("…::abcdefgh::"));
	assert_string_equal(name + strlen(name) - strlen("::last"), "::last");
	memset(symbol, 'x', 1000);
	symbol[1000] = '\0';
	plain_name(symbol, name);
	assert_int_equal(strlen(name), PLAIN_NAME - 1);
}

/* Lengths beyond the end, nesting without end, and what has no parts. */
TEST(damaged_symbols_stay_as_they_are)
{
	char symbol[600] = "_Z1f";

	expect_name("_Z", "_Z");
	expect_name("_ZN", "_ZN");
	expect_name("_ZNE", "_ZNE");
	expect_name("_Z9abc", "_Z9abc");
	expect_name("_Z99999999999999999999999abc", "_Z99999999999999999999999abc");
	expect_name("_ZN3foo", "foo");
	expect_name("_ZN3foo9BarE", "foo…");
	for (unsigned i = 0; i < 100; i++)
		strcat(symbol, "I1a");
	expect_name(symbol, "f");
	memcpy(symbol, "_ZN1f1a", sizeof("_ZN1f1a") - 1);
	expect_name(symbol, "f::a…");
}
