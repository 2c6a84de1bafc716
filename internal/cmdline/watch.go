package cmdline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/rankd/rankd/internal/fileio"
)

// settle is how long files must be quiet before Changed returns. An editor writes a file in several
// steps, which follow each other within a few milliseconds.
const settle = 20 * time.Millisecond

// A Watcher reports changes in folders, for commands that repeat their work on each save. It watches folders instead
// of files, because editors replace files by rename. One goroutine at a time.
type Watcher struct {
	notify  *fsnotify.Watcher
	watched map[string]bool // folders
}

// NewWatcher returns a watcher of no folder. The caller closes it.
func NewWatcher() (*Watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching files: %w", err)
	}
	return &Watcher{notify: notify, watched: make(map[string]bool)}, nil
}

// Close ends the watcher.
func (w *Watcher) Close() error { return w.notify.Close() }

// Add watches the folders of these paths: a folder itself, or the folder of a file. Folders that are watched already
// stay. Changes count from now on, even those before the next call of Changed.
func (w *Watcher) Add(paths ...string) error {
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			path = filepath.Dir(path) // a file may be missing for a moment
		}
		path = filepath.Clean(path)
		if w.watched[path] {
			continue
		}
		if err := w.notify.Add(path); err != nil {
			return fmt.Errorf("watching %s: %w", path, err)
		}
		w.watched[path] = true
	}
	return nil
}

// Changed waits until a path that counts was written, made, renamed or removed, and then until the
// folders are quiet. It returns all changed paths that count, each as its folder was given to Add and the
// name of the file. The error is the cause of ctx, or says that the system lost events.
func (w *Watcher) Changed(ctx context.Context, counts func(path string) bool) (map[string]bool, error) {
	changed := make(map[string]bool)
	var quiet <-chan time.Time // nil until something changed
	for {
		select {
		case event := <-w.notify.Events:
			if path := filepath.Clean(event.Name); event.Op != fsnotify.Chmod && counts(path) {
				changed[path] = true
				quiet = time.After(settle)
			}
		case err := <-w.notify.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return nil, fmt.Errorf("watching files: %w", err)
			}
			return nil, ErrOverflow
		case <-quiet:
			return changed, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ErrOverflow says that the system lost events, so that any file may have changed.
var ErrOverflow = errors.New("watching files: too many changes at once")

// Stamp is [fileio.Stamp] of all files in the folders at these paths. Any goroutine.
func Stamp(folders ...string) string {
	systems := make([]fs.FS, len(folders))
	for i, folder := range folders {
		systems[i] = os.DirFS(folder)
	}
	return fileio.Stamp(nil, systems...)
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
