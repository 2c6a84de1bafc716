// Package command holds the rules that the commands of the program rankd share: which flags
// may be given together, which folders flags name, and which errors mean which exit status.
package command
