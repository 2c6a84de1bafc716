package compiler

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// compileFiles compiles the plan in the file a.plan.ts of an archive.
func compileFiles(t testing.TB, archive string) answer {
	t.Helper()
	folder := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, f.Name), f.Data, 0o600))
	}
	u := newUnit(testLanguage(t), "plans", Source{Folder: folder, File: "a.plan.ts"})
	u.compile()
	return u.answer
}

// shown returns the trace of the first node, in which a plan shows what it has computed.
func shown(t testing.TB, a answer) string {
	t.Helper()
	var plan struct {
		Nodes []struct {
			Params struct{ Trace string } `json:"params"`
		} `json:"nodes"`
	}
	require.NoError(t, json.Unmarshal(a.Artifact, &plan))
	require.NotEmpty(t, plan.Nodes)
	return plan.Nodes[0].Params.Trace
}

// TestModules: plans of several files run as modules of JavaScript do, and a name that has no value yet is an error.
func TestModules(t *testing.T) {
	const first = "-- a.plan.ts --\nimport { definePlan } from \"@ranking-dsl/runtime\";\n"
	const plan = "export default definePlan({ name: \"a\", build: (ctx) => ctx.fixedSource({ trace: String(shown) }) });\n"
	for name, c := range map[string]struct{ files, want, place, message string }{
		"a const before its value": {
			files: first + "const shown = K + \"a\";\nconst K = [\"items\"].join();\n" + plan,
			place: "a.plan.ts:2:15", message: "plan code failed: ReferenceError: Cannot access a variable before initialization",
		},
		"a class before its value": {
			files: first + "const shown = new C();\nclass C {}\n" + plan,
			place: "a.plan.ts:2:19", message: "plan code failed: ReferenceError: Cannot access a variable before initialization",
		},
		"a function before its text": {
			files: first + "const shown = f();\nfunction f() { return 5; }\n" + plan, want: "5",
		},
		"a const of a cycle": {
			files: first + "import { S } from \"./b\";\nexport const BASE = \"base\";\nconst shown = S;\n" + plan +
				"-- b.ts --\nimport { BASE } from \"./a\";\nexport const S = BASE + \"x\";\n-- a.ts --\nimport { S } from \"./b\";\nexport const BASE = S;\n",
			place: "a.ts:2:21", message: "plan code failed: ReferenceError: Cannot access a variable before initialization",
		},
		"weights of a cycle": {
			files: first + "import { mine } from \"./a\";\nconst shown = JSON.stringify(mine);\n" + plan +
				"-- a.ts --\nimport { all } from \"./b\";\nexport const mine = all;\nexport const WEIGHTS = { a: 2 };\n" +
				"-- b.ts --\nimport { WEIGHTS } from \"./a\";\nexport const all = { ...WEIGHTS };\n",
			place: "b.ts:2:25", message: "plan code failed: ReferenceError: Cannot access a variable before initialization",
		},
		"a default of a cycle": {
			files: first + "import shown from \"./a\";\n" + plan +
				"-- a.ts --\nimport { b } from \"./b\";\nexport default { b };\n-- b.ts --\nimport a from \"./a\";\nexport const b = a;\n",
			place: "b.ts:2:18", message: "plan code failed: ReferenceError: Cannot access a variable before initialization",
		},
		"a function of a cycle": {
			files: first + "import { a } from \"./a\";\nconst shown = a;\n" + plan +
				"-- a.ts --\nimport { b } from \"./b\";\nexport function f() { return 7; }\nexport const a = b + 1;\n" +
				"-- b.ts --\nimport { f } from \"./a\";\nexport const b = f();\n", want: "8",
		},
		"a function of a cycle that calls another one": {
			files: first + "import { a } from \"./a\";\nconst shown = a;\n" + plan +
				"-- a.ts --\nimport { b, g } from \"./b\";\nexport function f() { return g() + 1; }\nexport const a = b;\n" +
				"-- b.ts --\nimport { f } from \"./a\";\nexport function g() { return 1; }\nexport const b = f();\n", want: "2",
		},
		"imports run first, in order": {
			files: first + "log.push(\"plan\");\nimport \"./b\";\nimport { log } from \"./log\";\nimport \"./c\";\nconst shown = log;\n" + plan +
				"-- log.ts --\nexport const log: string[] = [];\n-- b.ts --\nimport { log } from \"./log\";\nimport \"./c\";\nlog.push(\"b\");\n-- c.ts --\nimport { log } from \"./log\";\nlog.push(\"c\");\n",
			want: "c,b,plan",
		},
		"live bindings, namespaces, documents": {
			files: first + "import * as ns from \"./b\";\nimport d, { n as n2, next } from \"./b\";\nimport doc from \"./d.json\";\nimport { k } from \"./d.json\";\nnext();\nexport { n } from \"./b\";\nexport * from \"./c\";\n" +
				"const shown = [ns.n, n2, d, doc.k, k, Object.keys(ns), ns.default];\n" + plan +
				"-- b.ts --\nexport * from \"./c\";\nexport let n = 1;\nexport function next() { n++; }\nexport default \"d\";\n-- c.ts --\nexport const c = 1;\n-- d.json --\n{\"k\": 3}\n",
			want: "2,2,d,3,3,c,default,n,next,d",
		},
		"names that esbuild has": {
			files: first + "const require = 1, module = 2, stdin_default = 3, stdin_exports = 4, __export = 5, import_b = 6;\nimport { b } from \"./b\";\n" +
				"const shown = [require, module, stdin_default, stdin_exports, __export, import_b, b];\n" + plan + "-- b.ts --\nexport const b = 7;\n",
			want: "1,2,3,4,5,6,7",
		},
		"a name that nobody has": {
			files: first + "import { b } from \"./b\";\nconst shown = b;\n" + plan + "-- b.ts --\nexport const b = 1 + nobody;\n",
			place: "b.ts:1:22", message: "nobody is not defined",
		},
		"a name that nobody has, alone": {
			files: first + "import \"./b\";\nconst shown = 1;\n" + plan + "-- b.ts --\nnobody.x = 5;\n",
			place: "b.ts:1:1", message: "nobody is not defined",
		},
		"CommonJS": {
			files: first + "import b from \"./b\";\nconst shown = b;\n" + plan + "-- b.ts --\nmodule.exports = 5;\n",
			place: "b.ts:1:1", message: "plans have no module",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := compileFiles(t, c.files)
			if c.message == "" {
				require.Empty(t, a.Errors)
				assert.Equal(t, c.want, shown(t, a))
				return
			}
			require.Len(t, a.Errors, 1)
			assert.Equal(t, c.message, a.Errors[0].Message)
			assert.Equal(t, c.place, a.Errors[0].Place())
		})
	}
}

// TestNullishBehindArithmetic: what is never null in JavaScript may be null in a row. Places behind such an operator are right.
func TestNullishBehindArithmetic(t *testing.T) {
	pairs := map[string]string{
		"-P.weight ?? 0.5": "coalesce(-P.weight, 0.5)", "(P.weight * 2) ?? 0.5": "coalesce(P.weight * 2, 0.5)",
		"P.weight / 2 ?? 0.5": "coalesce(P.weight / 2, 0.5)", "P.weight + 1 ?? 0.5": "coalesce(P.weight + 1, 0.5)",
		"P.weight - 1 ?? 0.5": "coalesce(P.weight - 1, 0.5)", "P.weight % 2 ?? 0.5": "coalesce(P.weight % 2, 0.5)",
		"P.weight ** 2 ?? 0.5":                                 "coalesce(P.weight ** 2, 0.5)",
		"(P.weight * 2 ?? -Key.score) ?? 1":                    "coalesce(coalesce(P.weight * 2, -Key.score), 1)",
		"P.weight * 2 ?? -Key.score ?? 1":                      "coalesce(coalesce(P.weight * 2, -Key.score), 1)",
		"((-P.weight) ?? ((Key.score + 1) ?? 2)) * (3 ?? 4)":   "coalesce(-P.weight, coalesce(Key.score + 1, 2)) * 3",
		"{ let x: any = P.weight; return (x *= 2) ?? 1; }":     "coalesce(P.weight * 2, 1)",
		"{ let x: any; return (x = P.weight, x * 2) ?? 1; }":   "coalesce(P.weight * 2, 1)",
		"(P.weight * 2 as number) ?? (1 as number)":            "coalesce(P.weight * 2, 1)",
		"Math.sqrt(Key.score) ?? 1":                            "coalesce(Math.sqrt(Key.score), 1)",
		"{ let x: any = P.weight * 2; x ??= 1; return x; }":    "coalesce(P.weight * 2, 1)",
		"(-P.weight ?? 1) > 2 ? (1 - P.weight) ?? 3 : -Key.id": "coalesce(-P.weight, 1) > 2 ? coalesce(1 - P.weight, 3) : -Key.id",
		"[1, 2].map((x) => x * 2 ?? -P.weight)[1] * Key.id":    "4 * Key.id",
		"(() => -1 ?? Key.id)() + Key.id":                      "-1 + Key.id",
	}
	var texts, wanted []string
	for text, want := range pairs {
		texts, wanted = append(texts, text), append(wanted, want)
	}
	got, want := expressions(t, texts), expressions(t, wanted)
	for i := range texts {
		assert.Equal(t, compact(t, want[i]), compact(t, got[i]), texts[i])
	}

	a := compileText(t, planOf("vm", "outKey: Key.score, expr", []string{"-P.weight ?? (é => -é ?? Key.nobody)(2 * P.weight) ?? Key.nothing", "`${P.lang + \"x\" ?? Key.nowhere}`"}))
	var places []string
	for _, d := range a.Errors {
		places = append(places, d.Place()+" "+d.Message)
	}
	assert.Equal(t, []string{`a.plan.ts:3:61 Key has no "nobody"`, `a.plan.ts:3:90 Key has no "nothing"`, `a.plan.ts:4:55 Key has no "nowhere"`}, places)
}
