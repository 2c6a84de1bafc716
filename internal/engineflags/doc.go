// Package engineflags holds the flags that open an engine, for the commands of the program rankd that
// run plans: what each flag is called, which values and combinations it takes, and which rankd.Options they make.
//
// A command adds the groups of flags that it has, and calls ChooseEngine, Idle and Check once they are parsed.
package engineflags
