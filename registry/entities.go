package registry

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
)

// UserEntity is the name of the entity that requests name by user_id.
const UserEntity = "user"

// Entity is a kind of thing that rows stand for, such as products. Rows of different entities have nothing in common,
// even if their ids are equal. Immutable once built; any goroutine.
type Entity struct {
	Name string `json:"name"`
	ID   Type   `json:"id"` // of the ids: Int or String
}

// TextIDs reports whether the ids are texts. A nil entity means that no entity was declared; the ids are then
// integers.
func (e *Entity) TextIDs() bool { return e != nil && e.ID == String }

// Entity returns the entity with that name, case-sensitive.
func (r *Registry) Entity(name string) (*Entity, bool) {
	i, ok := slices.BinarySearchFunc(r.entities, name, func(e *Entity, name string) int { return cmp.Compare(e.Name, name) })
	if !ok {
		return nil, false
	}
	return r.entities[i], true
}

// User returns the entity of the users of requests, UserEntity, or nil if it is not declared.
func (r *Registry) User() *Entity { return r.user }

// TextIDs reports whether the ids of some entity are texts.
func (r *Registry) TextIDs() bool { return slices.ContainsFunc(r.entities, (*Entity).TextIDs) }

// Entities returns all entities, ascending by name. Callers must not change the slice.
func (r *Registry) Entities() []*Entity { return r.entities }

// readEntities reads entities.toml, if the folder has one.
func (l *loader) readEntities(r *Registry) {
	const file = "entities.toml"
	if _, err := fs.Stat(l.tables, file); errors.Is(err, fs.ErrNotExist) {
		return
	}
	var table struct {
		Entity []struct {
			Name string `toml:"name"`
			ID   string `toml:"id"`
		} `toml:"entity"`
	}
	if _, ok := l.decode(file, &table); !ok {
		return
	}
	e := newEntries[int](l, file, "entity")
	for i, row := range table.Entity {
		label := e.label(i, nil)
		entity := &Entity{Name: row.Name, ID: Int}
		if row.ID != "" {
			entity.ID = l.typeNamed(file, label, row.ID, Int, String)
		}
		if e.identify(label, &i, row.Name) {
			r.entities = append(r.entities, entity)
		}
	}
	slices.SortFunc(r.entities, func(a, b *Entity) int { return cmp.Compare(a.Name, b.Name) })
	r.user, _ = r.Entity(UserEntity)
}
