package compiler

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
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
	script  string   // ASCII: a call of the host for each module
	lines   []int    // offset of each line in script
	modules []module // ascending
}

// module is a file of the plan in the script. Its text is that of a generator, which first makes the exports and
// imports of the module, then yields, and then runs its body.
type module struct {
	name   string
	from   int                 // offset of the text in the script
	line   int                 // of the first line of the text in the script, from 0
	origin *sourcemap.Consumer // nil if the source has no code
	kept   map[int][]int       // columns of the operators ?? that esbuild would fold, ascending, by line of the file
}

// What the host gives to a module. esbuild writes require and module.
const (
	requireName = hostName + "require"
	moduleName  = hostName + "module"
)

// options of esbuild for a plan's language. Target has what goja lacks, and Supported what it has.
var (
	target    = api.ES2020
	supported = map[string]bool{
		"logical-assignment": true, // the rewriter has to see "x &&= y"
		"class-field":        true, "class-static-field": true, "class-static-blocks": true, "class-private-field": true,
		"class-private-static-field": true, "class-private-method": true, "class-private-static-method": true,
		"class-private-accessor": true, "class-private-static-accessor": true, "class-private-brand-check": true,
		"unicode-escapes": false, // goja takes \u{1F600} for an error behind other letters
		"top-level-await": true,  // so that the host refuses it in its own words
	}
)

// buildBundle strips types and joins the imports. It returns nil after it has reported faults.
//
// esbuild as a bundler finds the files and faults between them. What it makes of the modules together is not used: it
// turns each const of a module into a var, which is undefined where JavaScript throws an error.
func (u *unit) buildBundle() *bundle {
	u.imports = make(map[[2]string]string)
	result := api.Build(api.BuildOptions{
		EntryPointsAdvanced: []api.EntryPoint{{InputPath: u.folder.entry, OutputPath: "plan"}},
		AbsWorkingDir:       "/",
		Outdir:              "/",
		Bundle:              true,
		Format:              api.FormatESModule,
		Platform:            api.PlatformNeutral,
		Target:              target,
		Supported:           supported,
		TreeShaking:         api.TreeShakingFalse,
		TsconfigRaw:         "{}", // without it esbuild looks for a file
		LogLimit:            diagnosticsMax,
		// Warnings of the bundler are for people who ship scripts.
		LogLevel:    api.LogLevelSilent,
		LogOverride: map[string]api.LogLevel{"ambiguous-reexport": api.LogLevelError},
		Plugins:     []api.Plugin{{Name: "folder", Setup: u.resolveInFolder}},
	})
	for i := range result.Errors {
		u.reportMessage(&result.Errors[i])
	}
	if len(result.Errors) > 0 {
		return nil
	}
	b := &bundle{}
	var script strings.Builder
	line := 0
	for _, file := range u.folder.loaded() {
		m := module{name: file.name}
		code := u.transform(file, &m)
		fmt.Fprintf(&script, "%s.module(%s, function* (%s, %s) {\n", hostName, asciiQuote(file.name), requireName, moduleName)
		m.from, m.line = script.Len(), line+1
		script.WriteString(code)
		script.WriteString("\n});\n")
		line += strings.Count(code, "\n") + 3
		b.modules = append(b.modules, m)
	}
	if len(u.answer.Errors) > 0 {
		return nil
	}
	b.script = script.String()
	b.lines = lineOffsets(b.script)
	return b
}

// transform strips the types of a file that has no faults.
func (u *unit) transform(file *sourceFile, m *module) string {
	loader := api.LoaderTS
	if strings.HasSuffix(file.name, ".json") {
		loader = api.LoaderJSON
	}
	if at := powerInEnum(file.text); at >= 0 {
		before := file.text[:at]
		line := strings.Count(before, "\n") + 1
		u.fail("syntax", file.name, line, utf16Len(before[strings.LastIndex(before, "\n")+1:])+1, "an enum cannot have a power", "write it before the enum: const cubed = 2 ** 3")
		return ""
	}
	lines := lineEnd.Split(file.text, -1)
	ends := append(lineEnd.FindAllString(file.text, -1), "")
	for {
		var text strings.Builder
		text.WriteString("\n") // The source map's reader drops what is at the very start of a file.
		for i, line := range lines {
			text.WriteString(line)
			text.WriteString(ends[i])
		}
		result := stripTypes(text.String(), loader)
		if len(result.Errors) > 0 { // A bundle has none of these.
			for i := range result.Errors {
				if at := result.Errors[i].Location; at != nil {
					at.File, at.Line = file.name, at.Line-1
				}
				u.reportMessage(&result.Errors[i])
			}
			return ""
		}
		var folded []*api.Location
		for i := range result.Warnings {
			if w := &result.Warnings[i]; w.ID == foldsNullish && w.Location != nil {
				folded = append(folded, w.Location)
			}
		}
		if len(folded) == 0 {
			// Parse fails only for a source without code, whose map is empty.
			// sourcemap 2.1.4 names line 0 where no code was: see TestModules.
			m.origin, _ = sourcemap.Parse("", result.Map)
			return string(result.Code)
		}
		slices.SortFunc(folded, func(a, b *api.Location) int { return cmp.Or(b.Line-a.Line, b.Column-a.Column) })
		if m.kept == nil {
			m.kept = make(map[int][]int)
		}
		for _, at := range folded {
			line := &lines[at.Line-2]
			m.kept[at.Line-1] = append(m.kept[at.Line-1], utf16Len((*line)[:at.Column]))
			*line = (*line)[:at.Column] + keptNullish + (*line)[at.Column+len("??"):]
		}
		for _, columns := range m.kept {
			slices.Sort(columns)
		}
	}
}

// esbuild drops d of "x ?? d" with a warning where x is arithmetic, which is never null in JavaScript. For a token it
// may be. Such an operator is written so that esbuild keeps it, and the rewriter knows it. The precedence is the same.
const (
	foldsNullish = "suspicious-nullish-coalescing"
	keptNullish  = "|| " + hostName + " &&"
)

// stripTypes makes a module of JavaScript of a file.
func stripTypes(text string, loader api.Loader) api.TransformResult {
	return api.Transform(text, api.TransformOptions{
		Loader: loader, Format: api.FormatCommonJS, Platform: api.PlatformNeutral, Target: target, Supported: supported,
		Charset: api.CharsetASCII, LegalComments: api.LegalCommentsNone, TreeShaking: api.TreeShakingFalse,
		Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentExclude, TsconfigRaw: "{}", LogLevel: api.LogLevelSilent,
		LogOverride: map[string]api.LogLevel{"empty-import-meta": api.LogLevelError},
	})
}

// powerInEnum returns the offset of an operator ** in an enum, or -1. esbuild computes it by another function than Math.pow, and
// leaves nothing of it. So each operator gets a name as an operand, and those that stand in an enum of the result are found by it.
func powerInEnum(text string) (at int) {
	at = -1
	if !strings.Contains(text, "enum") || !strings.Contains(text, "**") {
		return at
	}
	places := powers.FindAllStringSubmatchIndex(text, -1)
	var marked strings.Builder
	from := 0
	for i, place := range places {
		fmt.Fprintf(&marked, "%s** %s%d **", text[from:place[2]], hostName, i)
		from = place[3]
	}
	marked.WriteString(text[from:])
	program, err := parser.ParseFile(nil, "", string(stripTypes(marked.String(), api.LoaderTS).Code), 0, parser.WithDisableSourceMaps)
	if err != nil { // The file itself has the fault, too.
		return at
	}
	var look, inside func(ast.Node)
	inside = func(n ast.Node) {
		name, ok := n.(*ast.Identifier)
		if !ok {
			eachPart(n, inside)
		} else if i, err := strconv.Atoi(strings.TrimPrefix(name.Name.String(), hostName)); err == nil && (at < 0 || places[i][2] < at) && strings.HasPrefix(name.Name.String(), hostName) {
			at = places[i][2]
		}
	}
	look = func(n ast.Node) {
		if call, ok := n.(*ast.CallExpression); ok {
			for _, member := range enumMembers(call) {
				inside(member)
			}
		}
		eachPart(n, look)
	}
	look(&ast.BlockStatement{List: program.Body})
	return at
}

// powers matches an operator **, and not **= or what begins or ends a comment.
var powers = regexp.MustCompile(`(?:^|[^/*])(\*\*)(?:[^*/=]|$)`)

// enumMembers returns the statements of what esbuild makes of an enum: ((E2) => { E2[E2["A"] = 0] = "A"; … })(E || {}).
func enumMembers(call *ast.CallExpression) (members []ast.Node) {
	arrow, ok := call.Callee.(*ast.ArrowFunctionLiteral)
	if !ok || len(call.ArgumentList) != 1 || len(arrow.ParameterList.List) != 1 {
		return nil
	}
	parameter, _ := arrow.ParameterList.List[0].Target.(*ast.Identifier)
	body, _ := arrow.Body.(*ast.BlockStatement)
	if parameter == nil || body == nil {
		return nil
	}
	for _, statement := range body.List {
		if s, ok := statement.(*ast.ExpressionStatement); ok {
			if assign, ok := s.Expression.(*ast.AssignExpression); ok {
				if target, ok := assign.Left.(*ast.BracketExpression); ok {
					if of, ok := target.Left.(*ast.Identifier); ok && of.Name == parameter.Name {
						members = append(members, assign)
					}
				}
			}
		}
	}
	return members
}

// asciiQuote returns a string literal of JavaScript.
func asciiQuote(s string) string { return strconv.QuoteToASCII(s) }

func lineOffsets(text string) []int {
	offsets := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			offsets = append(offsets, i+1)
		}
	}
	return offsets
}

// importedCall begins a call of an import as esbuild writes it, without a place of its own.
const importedCall = "(0, import_"

// source returns the place in the sources of an offset in the script.
func (b *bundle) source(offset int) (file string, line, column int, ok bool) {
	i, _ := slices.BinarySearchFunc(b.modules, offset+1, func(m module, offset int) int { return m.from - offset })
	if i == 0 || b.modules[i-1].origin == nil {
		return "", 0, 0, false
	}
	m := &b.modules[i-1]
	if strings.HasPrefix(b.script[offset:], importedCall) {
		offset += len("(0, ")
	}
	at, found := slices.BinarySearch(b.lines, offset)
	if !found {
		at--
	}
	for inLine := offset - b.lines[at]; !ok && inLine >= 0; inLine-- { // It finds nothing behind the last mapping of a file.
		_, _, line, column, ok = m.origin.Source(at-m.line+1, inLine)
	}
	line--
	for _, operator := range m.kept[line] {
		switch longer := len(keptNullish) - len("??"); {
		case column >= operator+len(keptNullish):
			column -= longer
		case column > operator:
			column = operator
		}
	}
	return m.name, line, column + 1, ok
}

// resolveInFolder keeps esbuild inside the folder: esbuild does not read files by itself.
func (u *unit) resolveInFolder(build api.PluginBuild) {
	build.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
		return u.resolve(args), nil
	})
	build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: runtimeSpace}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		var module strings.Builder
		for _, name := range moduleExports[args.Path] {
			fmt.Fprintf(&module, "export const %s = 0;\n", name)
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
	u.importsMu.Lock()
	u.imports[[2]string{args.Importer, args.Path}] = name
	u.importsMu.Unlock()
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

// ambiguous matches what esbuild says of a name that two export * give.
var ambiguous = regexp.MustCompile(`^(?:Re-export of|Ambiguous import) ("[^"]*")`)

// notInTarget matches what esbuild says of syntax that goja lacks and esbuild cannot write in another way.
var notInTarget = regexp.MustCompile(`^(?:(.*) (?:is|are) (?:not available in the configured|currently not supported with the)|Transforming (.*) to the configured)`)

// jsx matches a line with an element, and asksForTag what esbuild then says, which reads a type or a pattern.
var (
	jsx        = regexp.MustCompile(`<[A-Za-z][^<>]*>.*</|<[A-Za-z][^<>]*/>|<>.*</>`)
	asksForTag = regexp.MustCompile(`^(Unterminated regular expression|Expected ">" but found|Unexpected ">"|Unexpected "<"|Expected identifier but found|Unexpected end of file)`)
)

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
	if match := ambiguous.FindStringSubmatch(m.Text); match != nil {
		code, text, hint = "import", "two files that export * leads to have the name "+match[1], "write export { "+strings.Trim(match[1], `"`)+` } from "./file" for the one that is meant`
	}
	if match := notInTarget.FindStringSubmatch(m.Text); match != nil && !ours {
		text, hint = "plan code cannot use this syntax: "+lowerFirst(match[1]+match[2]), noSyntax
		if match[1] == "Top-level await" {
			text, hint = "plan code cannot wait at the top of a file", "build runs once, from start to end, when the plan is compiled: leave out await"
		}
	}
	switch {
	case ours:
	case m.ID == "empty-import-meta":
		text, hint = "plan code has no import.meta", "a plan knows nothing of files: it imports them by name"
	case m.Location != nil && jsx.MatchString(m.Location.LineText) && asksForTag.MatchString(m.Text):
		text, hint = "plan code has no JSX", "a plan makes no page: write a string"
	}
	if text = strings.TrimSuffix(text, ":"); m.Location == nil { // of a note that follows
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
