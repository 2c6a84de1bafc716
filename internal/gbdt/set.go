package gbdt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
)

// MaxModels bounds the models of a folder.
const MaxModels = 1024

// suffixes follow a model's name in the name of its file. The content of the file shows its format.
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

// A Set has the models of a folder, by name. The nil Set has no folder and no models. Immutable once read; any
// goroutine.
type Set struct {
	models  map[string]*Model
	digests map[string]string // hex SHA-256 of their files, by name
	place   string
}

// ReadFolder reads all models of a folder: the model "clicks" is the file clicks.json or clicks.lightgbm. It ignores files with other
// suffixes, and folders. place names the folder in errors. The error is one line and names the file.
func ReadFolder(folder fs.FS, place string) (*Set, error) { return new(Set).Reread(folder, place) }

// Reread is ReadFolder for a folder that s was read from. The models whose files are the same are those of s; if all are, so is the Set.
func (s *Set) Reread(folder fs.FS, place string) (*Set, error) {
	files, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	next := &Set{models: make(map[string]*Model), digests: make(map[string]string), place: place}
	for _, file := range files {
		name := modelName(file.Name())
		if name == "" || file.IsDir() {
			continue
		}
		if next.models[name] != nil {
			return nil, fmt.Errorf("%s: %s: the model has two files", place, errtext.Name(file.Name()))
		}
		if len(next.models) == MaxModels {
			return nil, fmt.Errorf("%s: holds more than %d models", place, MaxModels)
		}
		text, err := fileio.Read(folder, file.Name(), MaxFileBytes)
		if err == nil {
			err = next.take(name, text, s)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", place, errtext.Name(file.Name()), err)
		}
	}
	if s.place == place && maps.Equal(s.digests, next.digests) {
		return s, nil
	}
	return next, nil
}

// take adds the model of a file. If the text is unchanged, it is the model of last.
func (s *Set) take(name string, text []byte, last *Set) (err error) {
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	s.digests[name], s.models[name] = digest, last.models[name]
	if last.digests[name] != digest {
		s.models[name], err = Read(text)
	}
	return err
}

// Digests returns the hex SHA-256 of the models' files, by name. The caller must not change the map. The nil Set has none.
func (s *Set) Digests() map[string]string {
	if s == nil {
		return nil
	}
	return s.digests
}

// Get returns the model of that name. The error is one line and names the nearest model.
func (s *Set) Get(name string) (*Model, error) {
	if s == nil {
		return nil, fmt.Errorf("there is no model %s: no folder of models is given (--model_dir)", errtext.Quote(name))
	}
	if m := s.models[name]; m != nil {
		return m, nil
	}
	near, found := errtext.Nearest(name, slices.Sorted(maps.Keys(s.models)))
	if !found {
		return nil, fmt.Errorf("there is no model %s: there are no files *%s in %s", errtext.Quote(name), strings.Join(suffixes[:], " or *"), s.place)
	}
	return nil, fmt.Errorf("there is no model %s in %s; the nearest is %q", errtext.Quote(name), s.place, near)
}
