package compile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/plan"
)

// watch compiles the sources that the arguments name, and again what each change affects, until ctx
// ends. A change while it compiles counts for the next round, so the last state wins.
func (p *Program) watch(ctx context.Context, o *options, args []string, c *compiler.Compiler) error {
	watcher, err := cmdline.NewWatcher()
	if err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	defer watcher.Close()
	if err := watcher.Add(args...); err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	known := make(results)
	var changed map[string]bool // nil: anything
	for {
		if err := p.round(ctx, o, args, c, watcher, known, changed); err != nil {
			return endOfWatch(ctx, err)
		}
		if changed, err = watcher.Changed(ctx, isSource); errors.Is(err, cmdline.ErrOverflow) {
			changed = nil
		} else if err != nil {
			return endOfWatch(ctx, err)
		}
	}
}

// endOfWatch returns nil if the signal that ends watch has come.
func endOfWatch(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// isSource reports whether plans may consist of the file at path, or their aliases stand in it.
func isSource(path string) bool {
	return isAliases(path) || strings.HasSuffix(path, ".ts") && !strings.HasSuffix(path, ".d.ts")
}

func isAliases(path string) bool { return filepath.Base(path) == plan.AliasesFile }

// round compiles what the changed files affect and reports.
func (p *Program) round(
	ctx context.Context, o *options, args []string, c *compiler.Compiler, watcher *cmdline.Watcher, known results, changed map[string]bool,
) error {
	sources, err := findSources(args)
	if err != nil { // a file, or the last plan of a folder, is missing for the moment
		fmt.Fprintf(p.Stderr, "rankd: %v\n", err)
		return nil
	}
	aliases, err := findAliases(args)
	if err != nil {
		fmt.Fprintf(p.Stderr, "rankd: %v\n", err)
		return nil
	}
	known.forget(sources)
	todo := known.affected(sources, changed)
	var fresh []compiler.Result
	switch {
	case len(todo) > 0:
		fresh, err = c.Compile(ctx, todo...)
	case !slices.ContainsFunc(slices.Collect(maps.Keys(changed)), isAliases):
		return nil
	}
	if err == nil {
		if same := known.sharingNames(fresh); len(same) > 0 { // compiled together they are refused
			fresh, err = c.Compile(ctx, append(todo, same...)...)
		}
	}
	if err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	for _, r := range fresh {
		known[r.Path()] = r
		if err := watcher.Add(r.Files...); err != nil {
			return &cmdline.RuntimeError{Err: err}
		}
	}
	if err := p.finish(o, fresh, aliases); err != nil && !errors.Is(err, cmdline.ErrReported) {
		return err
	}
	return nil
}

// results are the last outcomes by path of the source. One goroutine.
type results map[string]compiler.Result

// forget drops the sources that are gone.
func (all results) forget(sources []compiler.Source) {
	there := make(map[string]bool, len(sources))
	for _, s := range sources {
		there[s.Path()] = true
	}
	maps.DeleteFunc(all, func(path string, _ compiler.Result) bool { return !there[path] })
}

// affected returns the sources that have to be compiled after a change. A source with errors is always one of them,
// since the change may mend it. Nil means any change.
func (all results) affected(sources []compiler.Source, changed map[string]bool) []compiler.Source {
	return slices.DeleteFunc(slices.Clone(sources), func(s compiler.Source) bool {
		r, compiled := all[s.Path()]
		if !compiled || changed == nil || len(r.Errors) > 0 {
			return false
		}
		return !slices.ContainsFunc(r.Files, func(file string) bool { return changed[file] })
	})
}

// sharingNames returns the sources of known plans that have the name of a fresh one.
func (all results) sharingNames(fresh []compiler.Result) (sources []compiler.Source) {
	paths, names := make(map[string]bool), make(map[string]bool)
	for _, r := range fresh {
		paths[r.Path()] = true
		names[r.Plan] = r.Plan != ""
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if r := all[path]; names[r.Plan] && !paths[path] {
			sources = append(sources, r.Source)
		}
	}
	return sources
}
