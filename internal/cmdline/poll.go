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

// Stamp returns a text that changes when a file in these folders or their subfolders does: when it is written, added
// or removed, or when a link on its path is replaced. It ignores node_modules and names that begin with ".". Any
// goroutine.
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

// Poll waits until the Stamp of folders differs from seen, and then stays the same between two checks, so that nobody
// reads a half-written file. every is the time between checks. If ctx ends, the error is its cause; otherwise *seen is the new Stamp.
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
