// Package builtin holds the tasks that rankd comes with, one file each. It uses only what package task exports, so
// that a task of your own can do the same.
package builtin
