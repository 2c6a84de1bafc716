package cmdline

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/gbdt"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// Folders makes o read plans from the folder of --plan_dir, tables from the folder of --registry_dir, and
// models from the folder of --model_dir. An empty path leaves the built-in ones, and no models. The error names the flag.
func Folders(o *rankd.Options, planDir, registryDir, modelDir string) (err error) {
	if modelDir != "" {
		if o.Models, err = openFolder(modelFlag, modelDir); err != nil {
			return err
		}
		o.ModelsName = modelsName(modelDir)
	}
	if registryDir != "" {
		if o.Registry, err = openFolder("--registry_dir", registryDir); err != nil {
			return err
		}
		o.RegistryName = "--registry_dir " + registryDir
	}
	if planDir == "" {
		return nil
	}
	if o.Plans, err = openFolder("--plan_dir", planDir); err != nil {
		return err
	}
	o.PlansName, o.PlansDir = "folder "+errtext.Name(planDir), planDir
	files, err := fs.ReadDir(o.Plans, ".")
	if err != nil {
		return fmt.Errorf("--plan_dir: %w", err)
	}
	isPlan := func(f fs.DirEntry) bool {
		_, ok := plan.NameOfFile(f.Name())
		return ok
	}
	if !slices.ContainsFunc(files, isPlan) {
		return fmt.Errorf("--plan_dir: %s holds no plan, which is a file <name>.plan.json or <name>.plan.ts", errtext.Name(planDir))
	}
	return nil
}

// Beside returns the folder of a plan's file, where the plans are that it may read; empty: the file has not the name of a plan.
func Beside(file string) string {
	if _, ok := plan.NameOfFile(filepath.Base(file)); !ok {
		return ""
	}
	return filepath.Dir(file)
}

// Registry returns the tables in the folder of --registry_dir for an environment. An empty path
// means those of the program's own, or else the built-in tables. The error names the flag.
func Registry(own *rankd.Options, dir, env string) (*registry.Registry, error) {
	o := *own
	if err := Folders(&o, "", dir, ""); err != nil {
		return nil, err
	}
	if o.Registry == nil {
		return registry.Default(env)
	}
	reg, err := registry.Load(o.Registry, env)
	if err != nil { // one problem a line, each with its file
		return nil, registry.InFolder(o.RegistryName, err)
	}
	return reg.Named(o.RegistryName), nil
}

// LockRegistry writes the lock file of the tables in the folder of --registry_dir: see [registry.Lock]. It returns the file's path and the names
// that got new ids. With onlyNew it leaves the file alone unless there are such names.
func LockRegistry(dir string, onlyNew bool) (path string, added []string, err error) {
	folder, err := openFolder("--registry_dir", dir)
	if err != nil {
		return "", nil, err
	}
	text, added, err := registry.Lock(folder)
	if err != nil {
		return "", nil, registry.InFolder("--registry_dir "+dir, err)
	}
	path = filepath.Join(dir, registry.LockFile)
	if before, err := os.ReadFile(path); onlyNew && len(added) == 0 || err == nil && bytes.Equal(before, text) {
		return path, added, nil
	}
	if err := fileio.Replace(path, text); err != nil {
		return "", nil, &RuntimeError{Err: err}
	}
	return path, added, nil
}

// Models returns the models in the folder of --model_dir. An empty path means those of the program's own, or else nil.
// The error names the flag.
func Models(own *rankd.Options, dir string) (*gbdt.Set, error) {
	o := *own
	if err := Folders(&o, "", "", dir); err != nil || o.Models == nil {
		return nil, err
	}
	return gbdt.ReadFolder(o.Models, o.ModelsName)
}

const modelFlag = "--model_dir"

func modelsName(dir string) string { return modelFlag + " " + errtext.Name(dir) }

// openFolder returns the folder that a flag names. The error names both.
func openFolder(flag, path string) (fs.FS, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s: %s is not a folder", flag, path)
	}
	return os.DirFS(path), nil
}

// WriteFile uses write to write a file that a flag names.
func WriteFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
