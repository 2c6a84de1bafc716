package scheduler

import (
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowcache"
)

// newTables returns the tables of the endpoints whose reads are kept, by endpoint index, or nil if there are none.
func newTables(reg *registry.Registry) (tables []*rowcache.Table) {
	endpoints := reg.Endpoints()
	for _, ep := range endpoints {
		cache := ep.Policy.Cache
		if cache.Mode != registry.CacheTTL {
			continue
		}
		if tables == nil {
			tables = make([]*rowcache.Table, len(endpoints))
		}
		tables[ep.Index] = rowcache.NewTable(cache.MaxBytes, cache.MaxAge)
	}
	return tables
}
