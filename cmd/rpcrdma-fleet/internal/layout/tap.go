package layout

import "strings"

// Head says which unit is the last of a tap. The unit need not be done.
type Head struct {
	Schema string `json:"schema"`
	Tap    string `json:"tap"`
	Unit   string `json:"unit"`
}

// Encode is the JSON form.
func (h *Head) Encode() []byte {
	c := *h
	c.Schema = HeadSchema
	return encode(&c)
}

// ParseHead reads a Head from the object of a name.
func ParseHead(b []byte, name string) (*Head, error) {
	h := &Head{}
	if err := decode(b, MaxFailure, h); err != nil {
		return nil, err
	}
	if h.Schema != HeadSchema || !IsID(h.Unit) || CheckTap(h.Tap) != nil || HeadName(h.Tap) != name {
		return nil, malformed("it names no unit of the tap")
	}
	return h, nil
}

// Manifest says which Parquet files have the transactions of a tap, each once: those of Unit and of the units before it.
type Manifest struct {
	Schema string   `json:"schema"`
	Tap    string   `json:"tap"`
	Unit   string   `json:"unit"`
	Files  []Result `json:"files"`
}

// Encode is the JSON form.
func (m *Manifest) Encode() []byte {
	c := *m
	if c.Schema = ManifestSchema; c.Files == nil {
		c.Files = []Result{}
	}
	return encode(&c)
}

// ParseManifest reads the Manifest of a tap.
func ParseManifest(b []byte, tap string) (*Manifest, error) {
	m := &Manifest{}
	if err := decode(b, MaxDone, m); err != nil {
		return nil, err
	}
	if m.Schema != ManifestSchema || m.Tap != tap || !IsID(m.Unit) {
		return nil, malformed("it is not the manifest of tap %q", tap)
	}
	for i := range m.Files {
		r := &m.Files[i]
		if day := dayIn(r.Name); day == "none" || !strings.HasPrefix(r.Name, PartFolder(day, tap)) {
			return nil, malformed("%q is not a Parquet file of tap %q", r.Name, tap)
		}
		if err := r.check(); err != nil {
			return nil, err
		}
	}
	return m, nil
}
