// Package scrubtest compares what programs say of a capture with what they say of its scrubbed copy.
package scrubtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// told are the keys of JSON whose values scrub replaces by others of the same length.
var told = map[string]bool{
	"filehandle": true, "new_filehandle": true, "name": true, "path": true, "to": true, "file": true, "client_owner": true,
	"server_owner": true, "server_scope": true, "session": true, "client_id": true, "device": true, "devices": true, "handle": true,
	"machine": true, "owner": true, "fh": true, "client_implementation": true, "server_implementation": true,
}

// addresses matches IPv4, IPv6 and Ethernet addresses, with the blanks that fill a column.
var addresses = regexp.MustCompile(`(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|[0-9a-f]*:[0-9a-f:]*:[0-9a-f:.]+) *`)

// Differ compares two outputs in JSON: of a capture, and of its copy. It returns where they differ but for names, addresses, and the order of
// lists, which may depend on them; "" if nowhere.
func Differ(was, is []byte) string {
	a, b := values(was), values(is)
	if len(a) != len(b) {
		return fmt.Sprintf("%d objects become %d", len(a), len(b))
	}
	return differ("", ordered(a), ordered(b))
}

// values are one JSON text, or one in each line.
func values(b []byte) (all []any) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	for {
		var v any
		if err := d.Decode(&v); err != nil {
			return all
		}
		all = append(all, plain("", v))
	}
}

// plain is a value without names and addresses.
func plain(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = plain(k, x)
		}
		return v
	case []any:
		for i := range v {
			v[i] = plain(key, v[i])
		}
		return ordered(v)
	case string:
		s := addresses.ReplaceAllString(v, "@")
		switch {
		case told[key]:
			return fmt.Sprintf("%d bytes", len(v))
		case key == "connection_key":
			parts := strings.Split(s, "|")
			sort.Strings(parts)
			return strings.Join(parts, "|")
		}
		return s
	}
	return v
}

// ordered sorts objects.
func ordered(list []any) []any {
	for _, v := range list {
		if _, ok := v.(map[string]any); !ok {
			return list
		}
	}
	texts := make(map[int]string, len(list))
	order := make([]int, len(list))
	for i, v := range list {
		b, _ := json.Marshal(v) // of what was decoded
		texts[i], order[i] = string(b), i
	}
	slices.SortFunc(order, func(i, j int) int { return strings.Compare(texts[i], texts[j]) })
	sorted := make([]any, len(list))
	for i, at := range order {
		sorted[i] = list[at]
	}
	return sorted
}

func differ(path string, a, b any) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		for k := range y {
			if _, ok := x[k]; !ok {
				return fmt.Sprintf("%s/%s: nothing becomes %v", path, k, y[k])
			}
		}
		for k := range x {
			if d := differ(path+"/"+k, x[k], y[k]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			if d := differ(path, x[i], y[i]); d != "" {
				return d
			}
		}
		return ""
	}
	if fmt.Sprint(a) != fmt.Sprint(b) {
		return fmt.Sprintf("%s: %.100v becomes %.100v", path, a, b)
	}
	return ""
}
