// Package cmdline holds what the commands of the program rankd share: tables of flags and their checks, which flags
// may be given together, which folders flags name, the project file, how errors of flags read, which errors mean which exit status,
// and files that are watched.
//
// EngineFlags are the flags that open an engine, for commands that run plans: what each is called, which values and combinations it takes,
// and which rankd.Options they make. A command's table has the groups of settings that it needs. Once they are parsed it calls ChooseEngine,
// IdleFlags.AddSettings and Check.
package cmdline
