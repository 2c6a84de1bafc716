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
	Registry  string `toml:"registry"`
	Models    string `toml:"models"`
	Plans     string `toml:"plans"`
	Artifacts string `toml:"artifacts"`
	Redis     string `toml:"redis"`
	Env       struct {
		Dev  environmentRows `toml:"dev"`
		Test environmentRows `toml:"test"`
		Prod environmentRows `toml:"prod"`
	} `toml:"env"`
}

// environmentRows are the members that each environment may have.
type environmentRows struct {
	Models string `toml:"models"`
	Redis  string `toml:"redis"`
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
	for _, folder := range []struct{ member, path string }{
		{"registry", p.file.Registry}, {"models", p.file.Models},
		{"env.dev.models", p.file.Env.Dev.Models}, {"env.test.models", p.file.Env.Test.Models}, {"env.prod.models", p.file.Env.Prod.Models},
	} {
		if folder.path == "" {
			continue
		}
		if _, err := openFolder(errtext.Name(path)+": "+folder.member, p.at(folder.path)); err != nil {
			return nil, err
		}
	}
	return p, nil
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
	own := environmentRows{}
	if env := given.Lookup("env"); env != nil {
		own = map[string]environmentRows{"dev": p.file.Env.Dev, "test": p.file.Env.Test, "prod": p.file.Env.Prod}[env.Value.String()]
	}
	models, redis := cmp.Or(own.Models, p.file.Models), cmp.Or(own.Redis, p.file.Redis)
	for _, s := range []struct {
		flag, value string
		folder      bool
	}{
		{"registry_dir", p.file.Registry, true}, {"model_dir", models, true}, {"plan_dir", p.file.Plans, true},
		{"output", p.file.Artifacts, true}, {"redis", redis, false},
	} {
		f := given.Lookup(s.flag)
		if f == nil || f.Changed || s.value == "" || slices.Contains(leave, s.flag) {
			continue
		}
		if s.folder {
			s.value = p.at(s.value)
		}
		if err := f.Value.Set(s.value); err != nil { // Changed stays false: the flag is not on the command line.
			return fmt.Errorf("%s: %s: %w", errtext.Name(p.path), s.flag, err)
		}
		p.used = append(p.used, "--"+s.flag+" "+HidePassword(s.value))
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
