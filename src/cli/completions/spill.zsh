#compdef spill
# Completion of spill(1) for zsh; what is between the table's functions is written by hand.
local -a _spill_commands _spill_profiles
@TABLE@

# What can stand in a word's place, by its kind.
_spill_file() { _files; }
_spill_folder() { _files -/; }
_spill_policy() { _files -g '*.conf'; }
_spill_program() { _command_names -e; }
_spill_profile() { local expl; _wanted profiles expl profile compadd -a _spill_profiles; }
_spill_size() { _message 'size: 512MiB, 4.5GiB'; }
_spill_number() { _message number; }
_spill_text() { _message text; }
_spill_nothing() { _message 'no more arguments'; }
_spill_log()
{
	local -a expl logs=(${XDG_STATE_HOME:-$HOME/.local/state}/spill/*.jsonl(Nom))
	local found=1
	_files -g '*.jsonl' && found=0
	_wanted -V logs expl 'log, the newest first' compadd -a logs && found=0
	return found
}

local curcontext=$curcontext state line
_arguments -C '(- *)'{-h,--help}'[list the commands]' '(- *)'{-V,--version}'[print the version]' \
	'1:command:->command' '*::argument:->argument' && return 0
case $state in
command)
	_spill_commands+=('help:say how a command is used')
	_describe -t commands command _spill_commands
	;;
argument)
	if [[ $words[1] == help ]]; then
		_describe -t commands command _spill_commands
	else
		_spill_arguments $words[1]
	fi
	;;
esac
