//go:build !linux

package compiler

// limitData does nothing: only Linux bounds the data of a process. The watchdog bounds it elsewhere.
func limitData(int64) {}
