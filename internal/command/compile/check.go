package compile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task/builtin"
)

// check runs the command check.
func (p *Program) check(ctx context.Context, o *options, dir string) error {
	sources, err := compiler.Folder(dir)
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w; check looks at a whole folder: rankd check %s", err, filepath.Dir(dir))
	}
	if err != nil {
		return err
	}
	c, config, err := p.newCompiler(o)
	if err != nil {
		return err
	}
	defer c.Close()
	results, err := c.Compile(ctx, sources...)
	if err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	k := checker{options: o, dir: dir, config: config, made: make(map[string]bool), plans: make(map[string]checked)}
	k.report = report{Plans: []compiled{}, Diagnostics: []compiler.Diagnostic{}}
	for i := range results {
		k.compare(&results[i])
	}
	for _, folder := range []string{dir, o.output} {
		if err := k.others(folder); err != nil {
			return err
		}
	}
	k.needs()
	if o.online {
		if err := k.askEndpoints(ctx); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.plans)) {
		k.advise(k.plans[name].path, k.plans[name].graph)
	}
	for _, folder := range [...]string{dir, o.output} {
		k.report.checkAliases(folder, func(name string) bool { _, ok := k.plans[name]; return ok })
	}
	if err := k.compareAliases(); err != nil {
		return err
	}
	if o.json {
		return k.report.writeJSON(p.Stdout)
	}
	summary := "%s up to date"
	if o.advise && k.report.advice == 0 {
		summary += "; nothing to advise"
	}
	return k.report.writeText(p.Stderr, summary)
}

// checker compares sources with artifacts. One goroutine.
type checker struct {
	*options
	dir    string
	config compiler.Config
	report report
	made   map[string]bool // paths of the artifacts that sources make
	plans  map[string]checked
}

// checked is a plan that loads. Immutable.
type checked struct {
	path  string // of its artifact
	graph *plan.Graph
}

// compare checks the artifact of one source.
func (k *checker) compare(r *compiler.Result) {
	path := k.artifactPath(r)
	k.made[path] = true
	if twin := strings.TrimSuffix(r.Path(), plan.SourceSuffix) + plan.ArtifactSuffix; twin != path {
		if _, err := os.Stat(twin); err == nil {
			r.Errors = append(r.Errors, compiler.Diagnostic{Severity: compiler.Error, Code: "two-files", File: r.Path(), Line: 1, Column: 1,
				Message: "the plan has two files, the other is " + twin, Hint: "remove one of them"})
			k.made[twin] = true
		}
	}
	if len(r.Errors) == 0 {
		switch artifact, err := fileio.ReadRegular(path, plan.MaxArtifactBytes); {
		case err != nil:
			r.Errors = append(r.Errors, k.stale(r.Path(), fmt.Sprintf("its artifact is missing: %s: %v", path, err)))
		case !bytes.Equal(artifact, r.Artifact):
			r.Errors = append(r.Errors, k.stale(r.Path(), path+" is stale: the source compiles to another artifact"))
		}
		if g, err := plan.Load(path, r.Artifact, k.config.Tasks, k.config.Registry); err == nil { // as the compiler has seen
			k.graph(path, g)
		}
	}
	k.report.add(r, path)
}

func (k *checker) stale(file, message string) compiler.Diagnostic {
	return compiler.Diagnostic{Severity: compiler.Error, Code: "stale-artifact", File: file, Line: 1, Column: 1, Message: message,
		Hint: fmt.Sprintf("run rankd compile %s -o %s", k.dir, k.output)}
}

// others checks the artifacts of a folder that do not come from a present source: those of removed sources, and those
// that never had one. A folder that does not exist has none.
func (k *checker) others(folder string) error {
	files, err := os.ReadDir(folder)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, file := range files {
		path := filepath.Join(folder, file.Name())
		if k.made[path] || !strings.HasSuffix(path, plan.ArtifactSuffix) {
			continue
		}
		k.made[path] = true
		text, err := fileio.ReadRegular(path, plan.MaxArtifactBytes)
		if err != nil {
			k.report.fail(compiler.Diagnostic{Code: "bad-artifact", File: path, Line: 1, Column: 1, Message: err.Error()})
			continue
		}
		if k.hasLostSource(text) {
			k.report.fail(compiler.Diagnostic{Code: "stale-artifact", File: path, Line: 1, Column: 1,
				Message: "the source of this artifact is gone", Hint: "remove the artifact"})
			continue
		}
		g, err := plan.Load(path, text, k.config.Tasks, k.config.Registry)
		if err != nil {
			for _, bad := range faults(err) {
				k.report.fail(compiler.Diagnostic{Code: "bad-artifact", File: path, Line: 1, Column: 1,
					Message: strings.TrimPrefix(bad.Error(), path+": ")})
			}
			continue
		}
		k.lost(path, g)
		k.graph(path, g)
	}
	return nil
}

// graph checks plans with and without a source.
func (k *checker) graph(path string, g *plan.Graph) {
	k.plans[g.Name] = checked{path, g}
	k.columns(path, g)
}

// needs reports plans whose other plan the folder does not have, or cannot do what they want. A node may read that plan's rows,
// or Below may name it.
func (k *checker) needs() {
	needed := func(name string, check func(*plan.Graph) error) error {
		if other, ok := k.plans[name]; ok {
			return check(other.graph)
		}
		return fmt.Errorf("the folder has no sound plan %s", name)
	}
	for _, name := range slices.Sorted(maps.Keys(k.plans)) {
		p := k.plans[name]
		for _, n := range p.graph.Nodes {
			of, _, ok := builtin.Resident(n)
			if !ok {
				continue
			}
			if err := needed(of, func(kept *plan.Graph) error { return builtin.CheckReader(n, kept) }); err != nil {
				k.fail("resident-rows", p.path, n.SourceSpan, fmt.Sprintf("node %q reads the rows of plan %s: %v", n.ID, of, err))
			}
		}
		if below := p.graph.Below.Plan(); below != "" {
			if err := needed(below, p.graph.CheckFallback); err != nil {
				span := p.graph.Nodes[p.graph.Outputs[0]].SourceSpan
				k.fail("fallback-plan", p.path, span, fmt.Sprintf("below: plan %s cannot answer in place of %s: %v", below, name, err))
			}
		}
	}
}

// askEndpoints reports the endpoints of plans whose server does not answer, or serves another model than the table says.
func (k *checker) askEndpoints(ctx context.Context) error {
	reg, err := k.config.Registry.ReadSecrets()
	if err != nil {
		return err
	}
	asked := make(map[*registry.Endpoint]bool)
	for _, name := range slices.Sorted(maps.Keys(k.plans)) {
		p := k.plans[name]
		for _, n := range p.graph.Nodes {
			if n.Endpoint == nil || n.Endpoint.Embedded || asked[n.Endpoint] {
				continue
			}
			asked[n.Endpoint] = true
			ep, _ := reg.Endpoint(n.Endpoint.ID)
			if err := blocking.Ping(ctx, &scheduler.Config{Registry: reg}, ep); err != nil {
				k.fail("endpoint-offline", p.path, n.SourceSpan, fmt.Sprintf("node %q: endpoint %s: %v", n.ID, ep.Name, err))
			}
		}
	}
	return nil
}

// columns reports a column that a plan reads but no node writes.
func (k *checker) columns(path string, g *plan.Graph) {
	for _, bad := range faults(g.CheckColumns(path)) {
		k.fail("unwritten-column", path, bad.SourceSpan, fmt.Sprintf("node %q: %s: %s", bad.Node, bad.Field, bad.Msg))
	}
}

// faults returns all that is wrong with a plan.
func faults(err error) []*plan.Error {
	var bad *plan.Error
	if !errors.As(err, &bad) {
		return nil
	}
	return bad.All()
}

// hasLostSource reports whether the compiler made the artifact from a source in the folder that is checked.
func (k *checker) hasLostSource(artifact []byte) bool {
	var a struct {
		BuiltBy struct {
			Tool string `json:"tool"`
		} `json:"built_by"`
		Nodes []struct {
			SourceSpan string `json:"source_span"`
		} `json:"nodes"`
	}
	if json.Unmarshal(artifact, &a) != nil || a.BuiltBy.Tool != "rankd" || len(a.Nodes) == 0 {
		return false
	}
	dir, err := filepath.Abs(k.dir)
	return err == nil && strings.HasPrefix(a.Nodes[0].SourceSpan, filepath.Base(dir)+"/")
}

// lost reports keys and parameters that a plan uses and the registry lacks.
func (k *checker) lost(path string, g *plan.Graph) {
	for _, n := range g.Nodes {
		var keys []registry.KeyID
		var params []registry.ParamID
		for _, e := range n.Exprs {
			keys, params = append(keys, e.Keys()...), append(params, e.Params()...)
		}
		for _, p := range n.Preds {
			keys, params = append(keys, p.Keys()...), append(params, p.Params()...)
		}
		for _, id := range keys {
			if _, ok := k.config.Registry.Key(id); !ok {
				k.unknown(path, n, n.ExprSpan, fmt.Sprintf("key %d", id))
			}
		}
		for _, id := range params {
			if _, ok := k.config.Registry.Param(id); !ok {
				k.unknown(path, n, n.ExprSpan, fmt.Sprintf("parameter %d", id))
			}
		}
		for i := range n.Schema.Params {
			if schema := &n.Schema.Params[i]; schema.IsKey {
				id := n.Params.Int(schema.Name)
				none := !schema.Required && id == schema.IntValue
				if _, ok := k.config.Registry.Key(registry.KeyID(id)); !none && (!ok || id < 0) {
					k.unknown(path, n, n.SourceSpan, fmt.Sprintf("key %d", id))
				}
			}
		}
	}
}

func (k *checker) unknown(path string, n *plan.Node, span, name string) {
	k.fail("unknown-key", path, span, fmt.Sprintf("node %q uses %s, which the registry lacks", n.ID, name))
}

// fail reports a fault of an artifact, at the place in the source if the artifact names it.
func (k *checker) fail(code, path, span, message string) {
	k.report.fail(located(compiler.Diagnostic{Code: code, Message: message}, path, span))
}

// located returns a message about an artifact with its place: in the source, if the artifact names it.
func located(d compiler.Diagnostic, path, span string) compiler.Diagnostic {
	d.File, d.Line, d.Column = path, 1, 1
	if place := sourceSpan.FindStringSubmatch(span); place != nil {
		d.Message += " (" + path + ")"
		d.File = place[1]
		d.Line, _ = strconv.Atoi(place[2]) // digits
		d.Column, _ = strconv.Atoi(place[3])
	}
	return d
}

// sourceSpan matches "plans/x.plan.ts:14:9".
var sourceSpan = regexp.MustCompile(`^(.+):(\d{1,9}):(\d{1,9})$`)
