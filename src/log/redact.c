#include "redact.h"

#include <string.h>

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name_character(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == '/' ||
	       c == '+';
}

/* Case is the C locale's: strncasecmp follows the program's, and a Turkish I is another letter. */
static bool same(const char *text, const char *word, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + ('a' - 'A')) : text[i];

		if (c != word[i])
			return false;
	}
	return true;
}

static bool contains(const char *text, size_t count, const char *word)
{
	size_t length = strlen(word);

	for (size_t at = 0; at + length <= count; at++)
		if (same(text + at, word, length))
			return true;
	return false;
}

/* "apikey" and "authToken" end in one, "tokenizer" and "keyboard" do not. */
static bool ends_in(const char *text, size_t count, const char *word)
{
	size_t length = strlen(word);

	return count >= length && same(text + count - length, word, length);
}

static bool secret_word(const char *word, size_t count)
{
	static const char *const anywhere[] = {"secret", "password", "passwd", "passphrase", "credential"};
	static const char *const last[] = {"key", "keys", "token", "tokens", "auth", "authorization", "pwd"};

	for (size_t i = 0; i < sizeof(anywhere) / sizeof(anywhere[0]); i++)
		if (contains(word, count, anywhere[i]))
			return true;
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		if (ends_in(word, count, last[i]))
			return true;
	return (count == 3 && same(word, "hft", 3)) ||
	       (count == 4 && same(word, "pass", 4)); /* llama.cpp's -hft */
}

/* Words are what separators or a capital after a small letter part: --api-key, apiKey, model.api_key. */
static bool secret_name(const char *name, size_t count)
{
	size_t from = 0;

	for (size_t at = 0; at <= count; at++) {
		bool separator = at == count || !is_letter(name[at]);
		bool capital = !separator && at > from && name[at] < 'a' && name[at - 1] >= 'a';

		if ((separator || capital) && at > from && secret_word(name + from, at - from))
			return true;
		if (separator)
			from = at + 1;
		else if (capital)
			from = at;
	}
	return false;
}

/* A number of tokens, as in --max-tokens 128, is no secret, and neither is one token's in a vocabulary. */
static bool counts_tokens(const char *name, size_t count)
{
	return ends_in(name, count, "tokens") || ends_in(name, count, "token_id") ||
	       ends_in(name, count, "token-id");
}

static bool is_count(const char *value, size_t length)
{
	return length > 0 && length <= 9 && strspn(value, "0123456789") >= length;
}

static size_t name_length(const char *text)
{
	size_t length = 0;

	while (is_name_character(text[length]))
		length++;
	return length;
}

/* Any URL of it: there are lists of them. */
static bool carries_login(const char *argument)
{
	size_t length = strlen(argument);

	if (contains(argument, length, "authorization:") || contains(argument, length, "bearer "))
		return true;
	for (const char *at = argument; (at = strstr(at, "://"));) {
		at += 3;
		if (memchr(at, '@', strcspn(at, "/?# ")))
			return true;
	}
	return false;
}

/*
 * Where the value of the name argument[from..end) begins: behind NAME= wherever it stands, of an option, in a list, a URL's query or a
 * shell's command; there also behind a header's "NAME: ", a member's "NAME": and --NAME. 0 if it has none.
 */
static size_t value_of(const char *argument, size_t from, size_t end, bool first)
{
	bool option = argument[first ? 0 : from] == '-';
	size_t at = end + strspn(argument + end, "\"'\\");

	if (at > end)
		at += strspn(argument + at, " ");
	if (argument[at] == '=' || (argument[at] == ':' && (at > end || first || argument[at + 1] == ' ')))
		return at + 1;
	return at == end && option && (argument[at] == ' ' || argument[at] == '\t') ? at + 1 : 0;
}

/* As much of it as is before the first secret's value. */
static size_t before_secret(const char *argument)
{
	size_t dashes = strspn(argument, "-"), end, value;

	for (size_t from = dashes;; from = end + 1) {
		end = from + name_length(argument + from);
		value = value_of(argument, from, end, from == dashes);
		if (value && secret_name(argument + from, end - from)) {
			const char *text = argument + value + strspn(argument + value, " ");

			if (!counts_tokens(argument + from, end - from) || !is_count(text, name_length(text)))
				return value;
		}
		if (argument[end] == '\0')
			return end;
	}
}

size_t spill_redact_shown(struct spill_redact *state, const char *argument)
{
	struct spill_redact before = *state;
	size_t from = strspn(argument, "-"), end = from + name_length(argument + from);

	/* Judged by its name even where it is itself hidden: after `--use-auth --password x`, x is one too. */
	state->next = from > 0 && argument[end] == '\0' && secret_name(argument + from, end - from);
	state->count = counts_tokens(argument + from, end - from);
	if ((before.next && !(before.count && is_count(argument, strlen(argument)))) ||
	    carries_login(argument))
		return 0;
	return before_secret(argument);
}
