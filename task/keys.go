package task

import (
	"math"

	"github.com/rankd/rankd/registry"
)

// Key returns the key of the number that a plan gives, which may be any integer, and
// whether the registry has it.
func (c *Ctx) Key(id int64) (*registry.Key, bool) {
	key, ok := keyID(id)
	if !ok {
		return nil, false
	}
	return c.Registry.Key(key)
}

// KeyByName returns the key of that name, and whether the registry has it.
func (c *Ctx) KeyByName(name string) (*registry.Key, bool) { return c.Registry.KeyByName(name) }

// keyID converts an integer that may be out of a key's range.
func keyID(id int64) (registry.KeyID, bool) {
	return registry.KeyID(id), 0 < id && id <= math.MaxUint32
}
