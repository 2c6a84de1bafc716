package compile

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/plan"
)

// compile runs the command compile.
func (p *Program) compile(ctx context.Context, o *options, args []string) error {
	sources, err := findSources(args)
	if err != nil {
		return err
	}
	c, _, err := p.newCompiler(o)
	if err != nil {
		return err
	}
	defer c.Close()
	if o.watch {
		return p.watch(ctx, o, args, c)
	}
	aliases, err := findAliases(args)
	if err != nil {
		return err
	}
	results, err := c.Compile(ctx, sources...)
	if err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	return p.finish(o, results, aliases)
}

// finish writes the artifacts and the aliases, and reports. The error is cmdline.ErrReported if a plan or an alias has errors.
func (p *Program) finish(o *options, results []compiler.Result, aliases aliasesFile) error {
	r := report{Plans: []compiled{}, Diagnostics: []compiler.Diagnostic{}}
	for i := range results {
		r.add(&results[i], o.artifactPath(&results[i]))
	}
	err := o.write(results)
	if err == nil {
		err = r.writeAliases(aliases, o.output)
	}
	if err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	if o.json {
		return r.writeJSON(p.Stdout)
	}
	return r.writeText(p.Stderr, "compiled %s to "+errtext.Name(o.output))
}

// artifactPath returns where the artifact of a result belongs.
func (o *options) artifactPath(r *compiler.Result) string {
	return filepath.Join(o.output, r.Plan+plan.ArtifactSuffix)
}

// write writes the artifacts of the plans that compiled. It leaves files alone that have the right content.
func (o *options) write(results []compiler.Result) error {
	if err := os.MkdirAll(o.output, 0o777); err != nil {
		return err
	}
	for i := range results {
		r := &results[i]
		if len(r.Errors) > 0 {
			continue
		}
		path := o.artifactPath(r)
		if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, r.Artifact) {
			continue
		}
		if err := fileio.Replace(path, r.Artifact); err != nil {
			return err
		}
	}
	return nil
}

// findSources returns the plans that the arguments name, each once. A folder stands for the plans in it.
func findSources(args []string) ([]compiler.Source, error) {
	var all []compiler.Source
	seen := make(map[string]bool)
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		sources := []compiler.Source{compiler.SourceFile(arg)}
		switch {
		case info.IsDir():
			if sources, err = compiler.Folder(arg); err != nil {
				return nil, err
			}
			if len(sources) == 0 {
				return nil, fmt.Errorf("%s holds no plan, which is a file <name>%s", errtext.Name(arg), compiler.Extension)
			}
		case !strings.HasSuffix(arg, compiler.Extension):
			return nil, fmt.Errorf("%s is not a plan in TypeScript, which is a file <name>%s", errtext.Name(arg), compiler.Extension)
		}
		for _, source := range sources {
			if path := source.Path(); !seen[path] {
				seen[path] = true
				all = append(all, source)
			}
		}
	}
	return all, nil
}
