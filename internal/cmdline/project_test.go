package cmdline

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// projectTree makes folders and files, each with its text, and changes to the folder.
func projectTree(t *testing.T, folder string, files map[string]string) {
	root := t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	t.Chdir(filepath.Join(root, folder))
}

func TestProject(t *testing.T) {
	const text = "registry = \"tables\"\nmodels = \"models\"\nplans = \"plans\"\nartifacts = \"out\"\nredis = \"redis://u:pw@h:1\"\n" +
		"[env.prod]\nregistry = \"models\"\nmodels = \"tables\"\nplans = \"live\"\nartifacts = \"served\"\nredis = \"prod:6379\""
	files := map[string]string{"rankd.toml": text, "tables/x": "", "models/x": "", "plans/deep/x": "", "repository/.git/x": "", "repository/a/x": ""}
	for _, c := range []struct {
		name, folder string
		args         []string
		want         string // the flags, then what the project says
	}{
		{"here", ".", nil, "tables models plans out redis://u:pw@h:1\n" +
			"rankd.toml: --registry_dir tables --model_dir models --plan_dir plans --output out --redis redis://***@h:1"},
		{"above", "plans/deep", nil, "../../tables ../../models ../../plans ../../out redis://u:pw@h:1\n" +
			"../../rankd.toml: --registry_dir ../../tables --model_dir ../../models --plan_dir ../../plans --output ../../out --redis redis://***@h:1"},
		{"flags win", ".", []string{"--registry_dir=mine", "--redis=h:2", "--env=prod"}, "mine tables live served h:2\n" +
			"rankd.toml: --model_dir tables --plan_dir live --output served"},
		{"environment", ".", []string{"--env=prod"}, "models tables live served prod:6379\n" +
			"rankd.toml: --registry_dir models --model_dir tables --plan_dir live --output served --redis prod:6379"},
		{"another environment", ".", []string{"--env=test", "--model_dir=m", "--plan_dir=p", "--output=o"}, "tables m p o redis://u:pw@h:1\n" +
			"rankd.toml: --registry_dir tables --redis redis://***@h:1"},
		{"not above a repository", "repository/a", nil, "    \n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			projectTree(t, c.folder, files)
			f := pflag.NewFlagSet("", pflag.ContinueOnError)
			env := f.String("env", "dev", "")
			var values [5]string
			for i, name := range []string{"registry_dir", "model_dir", "plan_dir", "output", "redis"} {
				f.StringVar(&values[i], name, "", "")
			}
			require.NoError(t, f.Parse(c.args))
			p, err := FindProject(".")
			require.NoError(t, err)
			says := ""
			if p != nil {
				require.NoError(t, p.Apply(f))
				says = p.String()
			}
			got := values[0] + " " + values[1] + " " + values[2] + " " + values[3] + " " + values[4]
			assert.Equal(t, c.want, got+"\n"+says)
			given := 0
			f.Visit(func(*pflag.Flag) { given++ })
			assert.Equal(t, len(c.args), given, "the file gives no flag as if the command line did")
			agrees := ""
			if *env == "test" { // whose redis is for all environments
				agrees = "rankd.toml"
			}
			assert.Equal(t, agrees, annotation(f.Lookup("redis"), agreeKey))
		})
	}
}

func TestProjectErrors(t *testing.T) {
	for text, want := range map[string]string{
		"registry = \"none\"":            "rankd.toml: registry: stat none: no such file or directory",
		"models = \"rankd.toml\"":        "rankd.toml: models: rankd.toml is not a folder",
		"[env.prod]\nmodels = \"none\"":  "rankd.toml: env.prod.models: stat none: no such file or directory",
		"\nregistri = \"x\"":             "rankd.toml: line 2: unknown field registri",
		"[env.staging]\nredis = \"h:1\"": "rankd.toml: line 1: unknown field env.staging",
		"[env.test]\nregistry = \"x\"":   "rankd.toml: env.test.registry: stat x: no such file or directory",
		"plans = 1":                      "rankd.toml: line 1: ",
		"plans":                          "rankd.toml: line 1: ",
		string(make([]byte, 1<<16+1)):    "rankd.toml: larger than 65536 bytes",
	} {
		projectTree(t, ".", map[string]string{"rankd.toml": text})
		p, err := FindProject(".")
		if err == nil {
			err = p.CheckFolders()
		}
		assert.ErrorContains(t, err, want)
	}
}

func TestWriteProject(t *testing.T) {
	projectTree(t, ".", map[string]string{"tables/x": ""})
	var lines []string
	report := func(line string) { lines = append(lines, line) }
	require.NoError(t, WriteProject("tables/", "./plans", report))
	require.NoError(t, WriteProject("other", "other", report), "what is there stays")
	assert.Equal(t, []string{"wrote rankd.toml"}, lines)
	p, err := FindProject(".")
	require.NoError(t, err)
	assert.Equal(t, projectRows{projectSettings: projectSettings{Registry: "tables", Plans: "plans"}}, p.file)
}

// FuzzProject reads any text without a panic. A text that it accepts contains no unknown names.
func FuzzProject(f *testing.F) {
	for _, text := range []string{"plans = \"p\"\n[env.prod]\nredis = \"h:1\"", "env = 1", "plans = [", "[[env]]", "\"\\u0070lans\" = 'x'", "[env.dev.x]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := readProject(ProjectFile, []byte(text))
		if err != nil {
			assert.NotContains(t, err.Error(), "\n")
			return
		}
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		plans := flags.String("plan_dir", "", "")
		require.NoError(t, p.Apply(flags))
		assert.Equal(t, p.file.Plans != "" || p.file.Env.Dev.Plans != "", *plans != "")
	})
}
