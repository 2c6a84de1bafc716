package peers

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/tidwall/redcon"
)

// rawArray returns the array of bulk strings that a reply is, as the bytes came.
func rawArray(raw []byte) (redcon.RESP, error) {
	n, reply := redcon.ReadNextRESP(raw)
	switch {
	case n == 0:
		return redcon.RESP{}, fmt.Errorf("reply cannot be read: %.40q", raw)
	case reply.Type == redcon.Error:
		return redcon.RESP{}, errors.New(reply.String())
	case reply.Type != redcon.Array:
		return redcon.RESP{}, fmt.Errorf("reply is no array: %.40q", raw)
	}
	return reply, nil
}

func rawIDs(replies []redis.Cmder) ([]int64, error) {
	total := 0
	for _, reply := range replies {
		array, err := rawArray(reply.(*redis.RawCmd).Val())
		if err != nil {
			return nil, err
		}
		total += array.Count
	}
	ids := make([]int64, 0, total)
	for _, reply := range replies {
		array, err := rawArray(reply.(*redis.RawCmd).Val())
		if err != nil {
			return nil, err
		}
		array.ForEach(func(entry redcon.RESP) bool {
			if id, ok := parseID(entry.Data); ok {
				ids = append(ids, id)
			}
			return true
		})
	}
	return ids, nil
}

func rawCountry(raw []byte) (Country, error) {
	array, err := rawArray(raw)
	if err != nil {
		return Country{}, err
	}
	var found Country
	name, isCountry := true, false
	array.ForEach(func(word redcon.RESP) bool {
		switch {
		case name:
			isCountry = string(word.Data) == countryField
		case isCountry:
			found = Country{Name: string(word.Data), Known: true}
			return false
		}
		name = !name
		return true
	})
	return found, nil
}
