package fileio

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// Stamp returns a text that changes when a file in these folders or their subfolders does: when it is written, added
// or removed, or when a link to it or to a folder is replaced. It ignores node_modules, names that begin with ".", and
// files for which counts is false; a nil counts takes all. What cannot be read has no stamp. Any goroutine.
func Stamp(counts func(name string) bool, folders ...fs.FS) string {
	var all strings.Builder
	for i, folder := range folders {
		root, _ := fs.Stat(folder, ".")
		fmt.Fprintln(&all, i, identity(root))
		_ = fs.WalkDir(folder, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || path == "." {
				return nil
			}
			switch hidden := strings.HasPrefix(entry.Name(), "."); {
			case entry.IsDir() && (hidden || entry.Name() == "node_modules"):
				return fs.SkipDir
			case hidden || counts != nil && !counts(entry.Name()):
				return nil
			}
			if file, err := fs.Stat(folder, path); err == nil && file.Mode().IsRegular() {
				fmt.Fprintln(&all, path, identity(file), file.Size(), file.ModTime().UnixNano())
			} else if err == nil { // What goes through a pipe is no change of the folder.
				fmt.Fprintln(&all, path, identity(file))
			}
			return nil
		})
	}
	return all.String()
}

// identity tells a file from another one that takes its place. It is empty for a file that the system does not have.
func identity(file fs.FileInfo) string {
	if file == nil {
		return ""
	}
	if s, ok := file.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(s.Dev, " ", s.Ino)
	}
	return ""
}
