// Package cmdline holds what the commands of the program rankd share: tables of flags and their checks, rules for
// combinations of flags, the folders that flags name, the project file, the texts of flag errors, exit statuses, and
// watched files.
//
// EngineFlags are the flags that open an engine, for commands that run plans: their names, their values and
// combinations, and the rankd.Options that they set. A command's table has the groups of settings that it needs. Once
// they are parsed it calls ChooseEngine, IdleFlags.AddSettings and Check.
package cmdline
