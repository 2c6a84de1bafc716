package compiler

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/go-sourcemap/sourcemap"
)

const (
	runtimeModule = "@ranking-dsl/runtime" // what plans import
	hostName      = "__rankd_host__"       // the free variable through which rewritten code reaches the host
	planSpace     = "plan"                 // namespace of the folder's files in esbuild
	testModule    = "@ranking-dsl/test"    // what tests of plans import
	runtimeSpace  = "runtime"
)

// runtimeExports are the names that runtimeModule exports. Types need none.
var runtimeExports = []string{"definePlan", "E", "Pred"}

// moduleExports are the names that each module of the host exports.
var moduleExports = map[string][]string{runtimeModule: runtimeExports, testModule: testExports}

// A bundle is a plan and its imports as one script, and the way back to the sources.
type bundle struct {
	script string              // ASCII
	lines  []int               // offset of each line in script
	origin *sourcemap.Consumer // nil if the source has no code
}

// buildBundle strips types and joins the imports. It returns nil after it has reported faults.
func (u *unit) buildBundle() *bundle {
	result := api.Build(api.BuildOptions{
		EntryPointsAdvanced: []api.EntryPoint{{InputPath: u.folder.entry, OutputPath: "plan"}},
		AbsWorkingDir:       "/",
		Outdir:              "/",
		Bundle:              true,
		Format:              api.FormatIIFE,
		GlobalName:          "plan",
		Platform:            api.PlatformNeutral,
		Target:              api.ES2020,
		Supported:           map[string]bool{"logical-assignment": true}, // the rewriter has to see "x &&= y"
		Charset:             api.CharsetASCII,
		LegalComments:       api.LegalCommentsNone,
		TreeShaking:         api.TreeShakingFalse,
		Sourcemap:           api.SourceMapExternal,
		SourcesContent:      api.SourcesContentExclude,
		TsconfigRaw:         "{}", // without it esbuild looks for a file
		LogLimit:            diagnosticsMax,
		// Warnings of the bundler are for people who ship scripts.
		LogLevel: api.LogLevelSilent,
		Plugins:  []api.Plugin{{Name: "folder", Setup: u.resolveInFolder}},
	})
	for i := range result.Errors {
		u.reportMessage(&result.Errors[i])
	}
	if len(result.Errors) > 0 {
		return nil
	}
	b := &bundle{}
	for _, file := range result.OutputFiles {
		if !strings.HasSuffix(file.Path, ".map") {
			b.script = string(file.Contents)
			continue
		}
		// Parse fails only for a source without code, whose map is empty.
		b.origin, _ = sourcemap.Parse("", file.Contents)
	}
	b.lines = lineOffsets(b.script)
	return b
}

func lineOffsets(text string) []int {
	offsets := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			offsets = append(offsets, i+1)
		}
	}
	return offsets
}

// source returns the place in the sources of an offset in the script.
func (b *bundle) source(offset int) (file string, line, column int, ok bool) {
	if b.origin == nil {
		return "", 0, 0, false
	}
	at, found := slices.BinarySearch(b.lines, offset)
	if !found {
		at--
	}
	if at < 0 {
		return "", 0, 0, false
	}
	file, _, line, column, ok = b.origin.Source(at+1, offset-b.lines[at])
	file, inFolder := strings.CutPrefix(file, planSpace+":")
	return file, line, column + 1, ok && inFolder
}

// resolveInFolder keeps esbuild inside the folder: esbuild does not read files by itself.
func (u *unit) resolveInFolder(build api.PluginBuild) {
	build.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
		return u.resolve(args), nil
	})
	build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: runtimeSpace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		var module strings.Builder
		for _, name := range moduleExports[args.Path] {
			fmt.Fprintf(&module, "export const %s = %s.%s;\n", name, hostName, name)
		}
		contents := module.String()
		return api.OnLoadResult{Contents: &contents, Loader: api.LoaderJS}, nil
	})
	build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: planSpace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		file, fault := u.folder.read(args.Path)
		if fault != nil {
			message := api.Message{Text: fault.message, Detail: fault}
			message.Location = &api.Location{File: planSpace + ":" + args.Path, Line: max(1, fault.line), Column: max(0, fault.column-1)}
			return api.OnLoadResult{Errors: []api.Message{message}}, nil
		}
		loader := api.LoaderTS
		if strings.HasSuffix(args.Path, ".json") {
			loader = api.LoaderJSON
		}
		return api.OnLoadResult{Contents: &file.text, Loader: loader}, nil
	})
}

// resolve says which file an import means.
func (u *unit) resolve(args api.OnResolveArgs) api.OnResolveResult {
	refuse := func(code, hint, format string, values ...any) api.OnResolveResult {
		fault := &fileFault{code: code, message: fmt.Sprintf(format, values...), hint: hint}
		return api.OnResolveResult{Errors: []api.Message{{Text: fault.message, Detail: fault}}}
	}
	quoted := quote(args.Path)
	switch {
	case args.Kind == api.ResolveEntryPoint:
		return api.OnResolveResult{Path: u.folder.entry, Namespace: planSpace}
	case args.Kind != api.ResolveJSImportStatement:
		return refuse("import", `write import { name } from "./file" at the top`, "plan code cannot load %s while it runs", quoted)
	case args.Path == runtimeModule, args.Path == testModule && u.testing != nil:
		return api.OnResolveResult{Path: args.Path, Namespace: runtimeSpace}
	case !strings.HasPrefix(args.Path, "./") && !strings.HasPrefix(args.Path, "../"):
		return refuse("import", "a plan is compiled without packages: it reaches no file outside its folder, no network and no process",
			"cannot import %s: plans import %q and files of their folder", quoted, runtimeModule)
	}
	name := path.Join(path.Dir(args.Importer), args.Path)
	if name == ".." || strings.HasPrefix(name, "../") {
		return refuse("import-outside", "move the file into the folder, or compile the folder above", "%s is outside the plan's folder", quoted)
	}
	name = u.folder.existing(name)
	switch {
	case name == u.folder.entry && args.Importer == u.folder.entry:
		return refuse("import-self", "remove the import", "the plan imports itself")
	case strings.HasSuffix(name, Extension) && u.testing != nil:
		return refuse("import-plan", "a test names the plan in its request, as in rank({ plan: \"home\", user_id: 1 }); what both use goes into a file of its own", "%s is a plan", quoted)
	case strings.HasSuffix(name, Extension):
		return refuse("import-plan", "move what both plans use into a file of its own", "%s holds a plan of its own", quoted)
	}
	if _, fault := u.folder.read(name); fault != nil && fault.line == 0 {
		return refuse(fault.code, fault.hint, "%s", fault.message)
	}
	return api.OnResolveResult{Path: name, Namespace: planSpace}
}

// existing returns the file that an import without extension means.
func (f *folder) existing(name string) string {
	if strings.HasSuffix(name, ".json") {
		return name
	}
	base := strings.TrimSuffix(strings.TrimSuffix(name, ".ts"), ".js")
	return base + ".ts"
}

// reportMessage turns an error of esbuild into a diagnostic.
func (u *unit) reportMessage(m *api.Message) {
	code, hint, text := "syntax", "the source has to be TypeScript: tsc --noEmit says more", m.Text
	fault, ours := m.Detail.(*fileFault)
	if ours {
		code, hint, text = fault.code, fault.hint, fault.message
	}
	if strings.HasPrefix(m.Text, "No matching export") {
		code, text = "import", strings.ReplaceAll(m.Text, planSpace+":", "")
		text = strings.ReplaceAll(text, runtimeSpace+":", "")
		hint = "add export in front of its declaration"
		switch {
		case strings.Contains(text, runtimeModule):
			hint = "it exports " + strings.Join(runtimeExports, ", ") + "; Key, P, EP, coalesce and regex are global"
		case strings.Contains(text, testModule):
			hint = "it exports " + strings.Join(testExports, ", ")
		}
	}
	if m.Location == nil {
		u.fail(code, u.folder.entry, 1, 1, text, hint)
		return
	}
	name := strings.TrimPrefix(m.Location.File, planSpace+":")
	column := m.Location.Column
	if column <= len(m.Location.LineText) {
		column = utf16Len(m.Location.LineText[:column])
	}
	u.fail(code, name, m.Location.Line, column+1, lowerFirst(text), hint)
}
