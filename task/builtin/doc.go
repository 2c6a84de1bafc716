// Package builtin holds the tasks that rankd comes with, one file each. It uses what
// package task exports and nothing more, so that a task of your own can do the same.
package builtin
