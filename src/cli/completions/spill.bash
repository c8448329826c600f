# Completion of spill(1) for bash; what is between the table's functions is written by hand.
# shellcheck shell=bash
@TABLE@

# Names may hold anything: they are read by line, and never expanded.
_spill_add() { mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY; }

# _spill_files WORD PATTERN: folders, and files that are not excluded by the pattern.
_spill_files()
{
	compopt -o filenames 2>/dev/null
	_spill_add < <(compgen -f -X "$2" -- "$1")
	_spill_add < <(compgen -d -- "$1")
}

_spill_logs()
{
	local log
	_spill_files "$1" '!*.jsonl'
	compopt -o nosort 2>/dev/null # the newest first
	while IFS= read -r log; do
		[[ $log != "$1"* ]] || COMPREPLY+=("$log")
	done < <(ls -t -- "${XDG_STATE_HOME:-$HOME/.local/state}"/spill/*.jsonl 2>/dev/null)
}

# _spill_word KIND WORD: what can stand in WORD's place.
_spill_word()
{
	case $1 in
	file) _spill_files "$2" '' ;;
	folder) _spill_files "$2" '*' ;;
	policy) _spill_files "$2" '!*.conf' ;;
	log) _spill_logs "$2" ;;
	profile) _spill_add < <(compgen -W "$_spill_profiles" -- "$2") ;;
	program) _spill_add < <(compgen -c -- "$2") ;;
	esac
}

# The kind of the option's value, by the table; fails if it has none.
_spill_kind()
{
	local option
	for option in $options; do
		[[ ${option%%=*} != "$1" || ${option#*=} == none ]] || { echo "${option#*=}" && return; }
	done
	return 1
}

_spill()
{
	local current=${COMP_WORDS[COMP_CWORD]} operand='' options='' awaited='' ended='' word i
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_spill_add < <(compgen -W "$_spill_commands help --help --version -V" -- "$current")
		return
	elif [ "${COMP_WORDS[1]}" = help ]; then
		_spill_add < <(compgen -W "$_spill_commands" -- "$current")
		return
	fi
	_spill_table "${COMP_WORDS[1]}"
	for ((i = 2; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $awaited ]]; then
			# "--limit=6GiB" is three words here.
			[ "$word" = = ] || awaited=''
		elif [[ ! $ended && $word == -- ]]; then
			ended=yes
		elif [[ ! $ended && $word == -* ]]; then
			awaited=$(_spill_kind "$word")
		elif [ "$operand" = program ]; then
			# From here on as that program's own completion has it.
			if declare -F _command_offset >/dev/null; then _command_offset "$i"; else _spill_files "$current" ''; fi
			return
		fi
	done
	if [[ $awaited ]]; then
		_spill_word "$awaited" "${current#=}"
	elif [[ ! $ended && $current == -* ]]; then
		_spill_add < <(for word in $options; do compgen -W "${word%%=*}" -- "$current"; done)
	else
		_spill_word "$operand" "$current"
	fi
}

complete -F _spill spill
