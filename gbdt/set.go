package gbdt

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/rankd/rankd/internal/excerpt"
	"github.com/rankd/rankd/internal/inputfile"
	"github.com/rankd/rankd/internal/nearest"
)

// MaxModels bounds the models of a folder.
const MaxModels = 1024

// suffixes follow a model's name in the name of its file. The file's content says its format.
var suffixes = [...]string{".json", ".lightgbm"}

// modelName returns the name of the model in a file. It is empty for other files.
func modelName(file string) string {
	for _, suffix := range suffixes {
		if name, ok := strings.CutSuffix(file, suffix); ok {
			return name
		}
	}
	return ""
}

// A Set has the models of a folder, by name. The nil Set is of no folder and has none. Immutable once read; any goroutine.
type Set struct {
	models map[string]*Model
	place  string
}

// ReadFolder reads all models of a folder: the model "clicks" is the file clicks.json or clicks.lightgbm. It ignores files with other
// suffixes, and folders. place names the folder in errors. The error is one line and names the file.
func ReadFolder(folder fs.FS, place string) (*Set, error) {
	files, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	s := &Set{models: make(map[string]*Model), place: place}
	for _, file := range files {
		name := modelName(file.Name())
		if name == "" || file.IsDir() {
			continue
		}
		if s.models[name] != nil {
			return nil, fmt.Errorf("%s: %s: the model has two files", place, excerpt.Name(file.Name()))
		}
		if len(s.models) == MaxModels {
			return nil, fmt.Errorf("%s: holds more than %d models", place, MaxModels)
		}
		text, err := inputfile.Read(folder, file.Name(), MaxFileBytes)
		if err == nil {
			s.models[name], err = Read(text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", place, excerpt.Name(file.Name()), err)
		}
	}
	return s, nil
}

// Get returns the model of that name. The error is one line and names the nearest model.
func (s *Set) Get(name string) (*Model, error) {
	if s == nil {
		return nil, fmt.Errorf("there is no model %s: no folder of models is given (--model_dir)", excerpt.Quote(name))
	}
	if m := s.models[name]; m != nil {
		return m, nil
	}
	near, found := nearest.Name(name, slices.Sorted(maps.Keys(s.models)))
	if !found {
		return nil, fmt.Errorf("there is no model %s: there are no files *%s in %s", excerpt.Quote(name), strings.Join(suffixes[:], " or *"), s.place)
	}
	return nil, fmt.Errorf("there is no model %s in %s; the nearest is %q", excerpt.Quote(name), s.place, near)
}
