package cmdline

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Stamp returns a text that changes when a file in these folders does, or in a folder of theirs: when somebody writes, adds or removes it, or replaces
// a link on the way to it. It leaves out names that begin with "." and node_modules. Any goroutine.
func Stamp(folders ...string) string {
	var all strings.Builder
	for _, folder := range folders {
		real, _ := filepath.EvalSymlinks(folder)
		fmt.Fprintln(&all, folder, real)
		_ = fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
			switch hidden := path != "." && strings.HasPrefix(entry.Name(), "."); {
			case err != nil:
				return nil // What cannot be read has no stamp.
			case entry.IsDir() && (hidden || entry.Name() == "node_modules"):
				return fs.SkipDir
			case entry.IsDir() || hidden:
				return nil
			}
			path = filepath.Join(folder, path)
			if file, err := os.Stat(path); err == nil {
				real, _ := filepath.EvalSymlinks(path)
				fmt.Fprintln(&all, path, real, file.Size(), file.ModTime().UnixNano())
			}
			return nil
		})
	}
	return all.String()
}

// Poll waits until the Stamp of folders is another one than seen, and then stays the same from one look to the next, so that nobody reads what is half
// written. It looks that often. The error is the cause of ctx, and seen is the new Stamp without one.
func Poll(ctx context.Context, every time.Duration, seen *string, folders ...string) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for last := *seen; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now := Stamp(folders...)
		if now == last && now != *seen {
			*seen = now
			return nil
		}
		last = now
	}
}
