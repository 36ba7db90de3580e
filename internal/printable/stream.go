package printable

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
)

// Indented writes a struct as Encoder does, with an indent of two spaces and a newline at the end. The fields of
// the struct, and the elements of those that are lists, are encoded one by one: the text of the whole is never in
// memory, which matters for lists of many thousands.
func Indented(w io.Writer, v any) error {
	s := &stream{w: JSONWriter(w)}
	s.object(reflect.ValueOf(v))
	if s.n == 0 {
		s.write("{")
	} else {
		s.write("\n")
	}
	s.write("}\n")
	return s.err
}

// stream writes an object.
type stream struct {
	w             io.Writer
	text, indents bytes.Buffer
	n             int // fields so far
	err           error
}

// object writes the fields of a struct, and those of structs embedded in it.
func (s *stream) object(v reflect.Value) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			s.object(v.Field(i))
		case !f.IsExported() || name == "-" && options == "":
		case strings.Contains(options, "omitempty") && empty(v.Field(i)), strings.Contains(options, "omitzero") && v.Field(i).IsZero():
		default:
			if name == "" {
				name = f.Name
			}
			s.field(name, v.Field(i))
		}
	}
}

// empty is what omitempty means.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

func (s *stream) field(name string, v reflect.Value) {
	if s.n++; s.n == 1 {
		s.write("{\n  ")
	} else {
		s.write(",\n  ")
	}
	s.value(name, "")
	s.write(": ")
	if v.Kind() != reflect.Slice || v.Len() == 0 || v.Type().Elem().Kind() == reflect.Uint8 || v.Type().Implements(marshaler) {
		s.value(v.Interface(), "  ")
		return
	}
	for i := range v.Len() {
		if i == 0 {
			s.write("[\n    ")
		} else {
			s.write(",\n    ")
		}
		s.value(v.Index(i).Interface(), "    ")
	}
	s.write("\n  ]")
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// value writes a value whose further lines begin with prefix.
func (s *stream) value(v any, prefix string) {
	if s.err != nil {
		return
	}
	s.text.Reset()
	e := json.NewEncoder(&s.text)
	e.SetEscapeHTML(false)
	if s.err = e.Encode(v); s.err != nil {
		return
	}
	s.indents.Reset()
	if s.err = json.Indent(&s.indents, bytes.TrimSuffix(s.text.Bytes(), []byte("\n")), prefix, "  "); s.err == nil {
		_, s.err = s.w.Write(s.indents.Bytes())
	}
}

func (s *stream) write(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.w, text)
	}
}
