// Package engineflags holds the flags that open an engine, for the commands of the program rankd that
// run plans: what each flag is called, which values and combinations it takes, and which rankd.Options they make.
//
// A command's table has the groups of settings that it needs. Once they are parsed it calls ChooseEngine, IdleFlags.AddSettings
// and Check.
package engineflags
