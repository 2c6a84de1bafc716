package generation

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rankd/rankd/internal/fileio"
	"github.com/rankd/rankd/internal/gbdt"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/trace/record"
)

// Contents reads what a generation is made of again: tables, models, and the plans that are loaded. Of endpoints it has ids, names,
// kinds and dialects alone, since nobody connects to them, and tables may have passwords. models says whether models come with their bytes. The
// error says what has changed since the generation was loaded. It may compile plans.
func (k *Keeper) Contents(g *Generation, models bool) (c *record.Generation, err error) {
	o := &k.loader.from
	c = &record.Generation{Env: o.Env}
	if c.Tables, err = tableFiles(o, g.tables); err != nil {
		return nil, err
	}
	for _, graph := range g.Plans() {
		text, err := g.Artifact(graph.Name)
		if err == nil && plan.Digest(text) != graph.Digest {
			err = errChanged
		}
		if err != nil {
			return nil, fmt.Errorf("plan %s: %w", graph.Name, err)
		}
		c.Plans = append(c.Plans, record.File{Name: graph.Name, Digest: graph.Digest, Bytes: text})
	}
	if c.Models, err = modelFiles(o.Models, g.ModelDigests(), models); err != nil {
		return nil, err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%q\n", c.Env)
	for _, part := range [][]record.File{c.Tables, c.Plans, c.Models} {
		for _, f := range part {
			fmt.Fprintf(hash, "%q %q\n", f.Name, f.Digest)
		}
	}
	c.Digest = hex.EncodeToString(hash.Sum(nil))
	return c, nil
}

var errChanged = fmt.Errorf("it has changed since it was loaded: no request can be recorded until the next reload")

// tableFiles returns the files of tables, and a file of endpoints without their addresses.
func tableFiles(o *Source, tables *registry.Registry) (files []record.File, err error) {
	folder := o.Registry
	if folder == nil {
		folder = registry.DefaultTables()
	}
	if again, err := registry.Load(folder, tables.Env()); err != nil || again.Digest() != tables.Digest() {
		return nil, fmt.Errorf("%s: %w", cmp.Or(o.RegistryName, "the tables"), cmp.Or(err, errChanged))
	}
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name := e.Name(); (path.Ext(name) == ".toml" || path.Ext(name) == ".lock") && !strings.HasPrefix(name, "endpoints.") {
			text, err := fileio.Read(folder, name, 64<<20)
			if err != nil {
				return nil, err
			}
			files = append(files, file(name, text))
		}
	}
	var text strings.Builder
	for _, e := range tables.Endpoints() {
		fmt.Fprintf(&text, "[[endpoint]]\nid = %q\nname = %q\nkind = %q\n", e.ID, e.Name, e.Kind)
		if e.Kind == registry.Redis {
			text.WriteString("host = \"recorded.invalid\"\nport = 6379\n\n")
		} else {
			text.WriteString(e.DialectLines("http://recorded.invalid") + "\n")
		}
	}
	return append(files, file("endpoints."+tables.Env()+".toml", []byte(text.String()))), nil
}

// modelFiles returns the files of models with these digests, by name.
func modelFiles(folder fs.FS, digests map[string]string, whole bool) (files []record.File, err error) {
	if len(digests) == 0 {
		return nil, nil
	}
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, err
	}
	left := maps.Clone(digests)
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), path.Ext(e.Name()))
		if left[name] == "" || e.IsDir() {
			continue
		}
		text, err := fileio.Read(folder, e.Name(), gbdt.MaxFileBytes)
		if err != nil {
			return nil, err
		}
		f := file(e.Name(), text)
		if f.Digest != left[name] {
			continue
		}
		if delete(left, name); !whole {
			f.Bytes = nil
		}
		files = append(files, f)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		return nil, fmt.Errorf("model %s: %w", name, errChanged)
	}
	return files, nil
}

func file(name string, text []byte) record.File {
	sum := sha256.Sum256(text)
	return record.File{Name: name, Digest: hex.EncodeToString(sum[:]), Bytes: text}
}
