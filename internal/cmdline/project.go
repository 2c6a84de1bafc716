package cmdline

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
)

// ProjectFile is the name of the file that gives flags their values where the command line does not.
const ProjectFile = "rankd.toml"

// projectMaxBytes bounds the file.
const projectMaxBytes = 1 << 16

// A Project is what a ProjectFile says. Folders are relative to the file's. One goroutine.
type Project struct {
	path string
	file projectRows
	used []string // "--registry_dir registry"
}

// projectRows are the members of a ProjectFile.
type projectRows struct {
	projectSettings
	Env struct {
		Dev  projectSettings `toml:"dev"`
		Test projectSettings `toml:"test"`
		Prod projectSettings `toml:"prod"`
	} `toml:"env"`
}

// projectSettings are the members that may stand at the top, for all environments, and in that of one.
type projectSettings struct {
	Registry  string `toml:"registry"`
	Models    string `toml:"models"`
	Plans     string `toml:"plans"`
	Artifacts string `toml:"artifacts"`
	Redis     string `toml:"redis"`
}

// of returns the settings of an environment. The zero value: there are none.
func (r *projectRows) of(env string) projectSettings {
	return map[string]projectSettings{"dev": r.Env.Dev, "test": r.Env.Test, "prod": r.Env.Prod}[env]
}

// FindProject reads the ProjectFile in the folder of start or in the nearest folder above it. It stops below
// the root of a Git repository. Nil means that there is none. The error names the file.
func FindProject(start string) (*Project, error) {
	dir, err := filepath.Abs(start)
	if err != nil {
		return nil, err
	}
	for {
		text, err := fileio.Read(os.DirFS(dir), ProjectFile, projectMaxBytes)
		if err == nil {
			return readProject(shortest(filepath.Join(dir, ProjectFile)), text)
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("%s: %w", shortest(filepath.Join(dir, ProjectFile)), err)
		}
		_, err = os.Stat(filepath.Join(dir, ".git"))
		above := filepath.Dir(dir)
		if err == nil || above == dir {
			return nil, nil
		}
		dir = above
	}
}

// shortest returns the path relative to the working directory, if that is shorter.
func shortest(path string) string {
	if wd, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(wd, path); err == nil && len(relative) < len(path) {
			return relative
		}
	}
	return path
}

// readProject reads the text of the file at path.
func readProject(path string, text []byte) (*Project, error) {
	p := &Project{path: path}
	in := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	err := in.Decode(&p.file)
	var unknown *toml.StrictMissingError
	var malformed *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		first := &unknown.Errors[0]
		line, _ := first.Position()
		return nil, fmt.Errorf("%s: line %d: unknown field %s", errtext.Name(path), line, errtext.Text(strings.Join(first.Key(), ".")))
	case errors.As(err, &malformed):
		line, _ := malformed.Position()
		return nil, fmt.Errorf("%s: line %d: %s", errtext.Name(path), line, errtext.Text(strings.TrimPrefix(malformed.Error(), "toml: ")))
	case err != nil:
		return nil, fmt.Errorf("%s: %s", errtext.Name(path), errtext.Text(err.Error()))
	}
	return p, nil
}

// CheckFolders reports a folder of tables or models that is not there, whatever the environment.
func (p *Project) CheckFolders() error {
	for _, table := range []struct {
		prefix string
		projectSettings
	}{{"", p.file.projectSettings}, {"env.dev.", p.file.Env.Dev}, {"env.test.", p.file.Env.Test}, {"env.prod.", p.file.Env.Prod}} {
		for _, folder := range []struct{ member, path string }{{"registry", table.Registry}, {"models", table.Models}} {
			if folder.path == "" {
				continue
			}
			if _, err := openFolder(errtext.Name(p.path)+": "+table.prefix+folder.member, p.at(folder.path)); err != nil {
				return err
			}
		}
	}
	return nil
}

// at returns a path in the file relative to the working directory.
func (p *Project) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(p.path), path)
}

// Apply sets flags that are not on the command line to the values of the file, for the environment of --env, except
// those in leave.
func (p *Project) Apply(given *pflag.FlagSet, leave ...string) error {
	env := "dev"
	if f := given.Lookup("env"); f != nil {
		env = f.Value.String()
	}
	all, own := p.file.projectSettings, p.file.of(env)
	for _, s := range []struct {
		flag, all, own string
		folder         bool
	}{
		{"registry_dir", all.Registry, own.Registry, true}, {"model_dir", all.Models, own.Models, true},
		{"plan_dir", all.Plans, own.Plans, true}, {"output", all.Artifacts, own.Artifacts, true}, {"redis", all.Redis, own.Redis, false},
	} {
		f, value := given.Lookup(s.flag), cmp.Or(s.own, s.all)
		if f == nil || f.Changed || value == "" || slices.Contains(leave, s.flag) {
			continue
		}
		if s.folder {
			value = p.at(value)
		}
		if err := f.Value.Set(value); err != nil { // Changed stays false: the flag is not on the command line.
			return fmt.Errorf("%s: %s: %w", errtext.Name(p.path), s.flag, err)
		}
		if s.flag == "redis" && s.own == "" && env != "dev" {
			_ = given.SetAnnotation(s.flag, agreeKey, []string{errtext.Name(p.path)}) // There is such a flag.
		}
		p.used = append(p.used, "--"+s.flag+" "+HidePassword(value))
	}
	return nil
}

// String says what Apply took from the file: "rankd.toml: --registry_dir registry". Secrets are hidden.
func (p *Project) String() string {
	return errtext.Name(p.path) + ": " + errtext.Text(strings.Join(p.used, " "))
}

// WriteProject writes a ProjectFile that names the folders of tables and plans into the working directory, unless there is one here or above.
// It calls report with a line about the file it wrote.
func WriteProject(registryDir, planDir string, report func(line string)) error {
	if there, err := FindProject("."); there != nil || err != nil {
		return err
	}
	text, err := toml.Marshal(struct {
		Registry string `toml:"registry"`
		Plans    string `toml:"plans"`
	}{filepath.Clean(registryDir), filepath.Clean(planDir)})
	if err == nil {
		err = fileio.Replace(ProjectFile, append([]byte("# What the flags of rankd are where a command line does not say: docs/your-own-data.md.\n"), text...))
	}
	if err != nil {
		return &RuntimeError{Err: err}
	}
	report("wrote " + ProjectFile)
	return nil
}
