package truth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Schema is the value of the key "schema" of the compact JSON form.
const Schema = "rpcrdma.truth/1"

// Truth is what the kernels of both machines recorded about one run.
type Truth struct {
	Schema      string            `json:"schema"`
	Name        string            `json:"name"`
	Scenario    map[string]string `json:"scenario,omitempty"`    // variables of the run: VERS, SEC, DRIVER, SNAPLEN…
	Overwritten bool              `json:"overwritten,omitempty"` // a trace buffer was too small: events are missing
	Connections []Connection      `json:"connections,omitempty"` // RDMA connections of the client, in order
	Calls       []*Call           `json:"calls,omitempty"`       // RPCs that the client sent over RDMA, in order of their first marshalling
	Others      []Other           `json:"others,omitempty"`      // the client's RPCs over TCP, UDP and local sockets
	Callbacks   []Callback        `json:"callbacks,omitempty"`   // backchannel calls, in order
	Mounts      []*Mount          `json:"mounts,omitempty"`
	Nfsd        *Nfsd             `json:"nfsd,omitempty"`
	Files       []FileSum         `json:"files,omitempty"`    // the export at the end
	Logged      []FileSum         `json:"logged,omitempty"`   // MD5 sums that the workload printed
	Reshaped    []string          `json:"reshaped,omitempty"` // files whose size or holes the workload changed without writing
}

// Connection is one RDMA connection that the client established.
type Connection struct {
	Client     string `json:"client"` // IP address
	ClientPort uint16 `json:"client_port"`
	Server     string `json:"server"`
	ServerPort uint16 `json:"server_port"`
	SendInline uint32 `json:"send_inline"` // negotiated inline thresholds in bytes
	RecvInline uint32 `json:"recv_inline"`
}

// Call is one RPC: all that was sent under one XID.
type Call struct {
	XID       XID    `json:"xid"`
	Client    string `json:"client,omitempty"`  // number of the rpc_clnt, hexadecimal
	Program   string `json:"program,omitempty"` // nfs, nfsacl; as in the ndjson
	Version   uint32 `json:"version,omitempty"`
	Procedure string `json:"proc,omitempty"`    // the client's name: READ, LOOKUP_ROOT…
	Served    string `json:"served,omitempty"`  // the server's name where it differs: COMPOUND
	RTT       uint32 `json:"rtt_us,omitempty"`  // transmission to reply, in microseconds, as the client saw it
	Outside   string `json:"outside,omitempty"` // what the capture does not contain: call, reply, both
	// Unserved reports that the server's RPC layer answered by itself, as it does for the NULL calls that set
	// up an RPCSEC_GSS context.
	Unserved bool    `json:"unserved,omitempty"`
	Sends    []*Send `json:"sends"`
}

// Send is one marshalling of a call, and what became of it.
type Send struct {
	Seq        int           `json:"seq"`            // 1-based order among all marshallings of the run
	By         string        `json:"by"`             // m: the client marshalled it; d: the server decoded it; r: the client got its reply
	Connection int           `json:"conn"`           // 1-based index in Truth.Connections
	Header     uint32        `json:"hdr"`            // bytes of the RPC-over-RDMA header
	XDR        [3]uint32     `json:"xdr"`            // bytes of the RPC call: head, pages, tail
	Kind       string        `json:"kind,omitempty"` // the client's plan, where not the plain "pullup/inline"
	Read       []ReadSegment `json:"read,omitempty"`
	Write      []Segment     `json:"write,omitempty"` // the only Write chunk; Linux sends no more than one
	Reply      []Segment     `json:"reply,omitempty"`
	Written    []uint32      `json:"written,omitempty"` // bytes written to each segment of Write or Reply
	NoMsg      bool          `json:"nomsg,omitempty"`   // the call is an RDMA_NOMSG
	Requested  uint32        `json:"req,omitempty"`     // credits in the call, as the server decoded them
	Granted    uint32        `json:"granted,omitempty"` // credits in the reply, as the client decoded them
	ServerUS   uint32        `json:"server_us,omitempty"`
	Aborted    *Aborted      `json:"aborted,omitempty"`
}

// Aborted counts the segments of attempts to marshal a call that did not come
// to an end.
type Aborted struct {
	Attempts int    `json:"attempts"`
	Read     int    `json:"read,omitempty"`
	Write    int    `json:"write,omitempty"`
	Reply    int    `json:"reply,omitempty"`
	Offered  uint64 `json:"offered,omitempty"` // bytes of Write and Reply segments
}

// plainKind is the plan of most calls; it is left out of the compact form.
const plainKind = "pullup/inline"

// Marshalled reports that the client built this message.
func (s *Send) Marshalled() bool { return strings.Contains(s.By, "m") }

// Decoded reports that the server received it.
func (s *Send) Decoded() bool { return strings.Contains(s.By, "d") }

// Answered reports that the client received its reply.
func (s *Send) Answered() bool { return strings.Contains(s.By, "r") }

// CallBytes is the size of the RPC call in bytes with all its XDR pads.
func (s *Send) CallBytes() uint64 {
	return uint64(s.XDR[0]) + uint64(s.XDR[1]) + uint64(s.XDR[2])
}

// Other is an RPC of the client that did not travel over RDMA.
type Other struct {
	XID       XID    `json:"xid"`
	Program   string `json:"program"`
	Version   uint32 `json:"version"`
	Procedure string `json:"proc"`
}

// Callback is a call of the server on the client's connection.
type Callback struct {
	XID        XID  `json:"xid"`
	Connection int  `json:"conn"`
	Replied    bool `json:"replied"`
	After      int  `json:"after"` // Send.Seq of the last marshalling before the reply
}

// FileSum is the MD5 sum of a file, by its path relative to the export, or as
// the workload named it.
type FileSum struct {
	MD5  string `json:"md5"`
	Path string `json:"path"`
}

// Load reads a NAME.truth directory or the compact JSON form.
func Load(path string) (*Truth, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return LoadDir(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Read reads the compact JSON form.
func Read(r io.Reader) (*Truth, error) {
	t := new(Truth)
	if err := json.NewDecoder(r).Decode(t); err != nil {
		return nil, err
	}
	if t.Schema != Schema {
		return nil, fmt.Errorf("schema is %q, not %q", t.Schema, Schema)
	}
	for _, c := range t.Calls {
		if c == nil || len(c.Sends) == 0 {
			return nil, fmt.Errorf("a call without a send")
		}
		for _, s := range c.Sends {
			if s == nil {
				return nil, fmt.Errorf("call %s: empty send", c.XID)
			}
			if s.Kind == "" {
				s.Kind = plainKind
			}
		}
	}
	return t, nil
}

// WriteTo writes the compact JSON form: one line for each call, so that a
// change shows as few lines.
func (t *Truth) WriteTo(w io.Writer) (int64, error) {
	head := *t
	head.Calls, head.Others, head.Files, head.Logged = nil, nil, nil, nil
	var b bytes.Buffer
	h, err := json.Marshal(&head)
	if err != nil {
		return 0, err
	}
	b.Write(h[:len(h)-1])
	calls := make([]any, len(t.Calls))
	for i, c := range t.Calls {
		cc := *c
		cc.Sends = make([]*Send, len(c.Sends))
		for j, s := range c.Sends {
			ss := *s
			if ss.Kind == plainKind {
				ss.Kind = ""
			}
			cc.Sends[j] = &ss
		}
		calls[i] = &cc
	}
	if err := writeLines(&b, "calls", calls); err != nil {
		return 0, err
	}
	if err := writeLines(&b, "others", toAny(t.Others)); err != nil {
		return 0, err
	}
	if err := writeLines(&b, "files", toAny(t.Files)); err != nil {
		return 0, err
	}
	if err := writeLines(&b, "logged", toAny(t.Logged)); err != nil {
		return 0, err
	}
	b.WriteString("}\n")
	return b.WriteTo(w)
}

func toAny[T any](list []T) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

func writeLines(b *bytes.Buffer, key string, list []any) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintf(b, ",\n%q:[", key)
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		j, err := json.Marshal(v)
		if err != nil {
			return err
		}
		b.Write(j)
	}
	b.WriteString("]")
	return nil
}

// LoadDir reads a NAME.truth directory. Files that are not there are left out;
// a directory without traces is the truth of a run without RPC.
func LoadDir(dir string) (*Truth, error) {
	t := &Truth{Schema: Schema, Name: strings.TrimSuffix(filepath.Base(filepath.Clean(dir)), ".truth")}
	read := func(name string, f func(io.Reader) error) error {
		file, err := os.Open(filepath.Join(dir, name))
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer file.Close()
		if err := f(file); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
		return nil
	}
	c, s := newClientTrace(), newServerTrace()
	var before, after *Nfsd
	steps := []struct {
		name string
		f    func(io.Reader) error
	}{
		{"scenario.env", func(r io.Reader) (err error) { t.Scenario, err = parseScenario(r); return }},
		{"trace.client", c.read},
		{"trace.server", s.read},
		{"mountstats", func(r io.Reader) (err error) { t.Mounts, err = parseMountstats(r); return }},
		{"nfs.server.before", func(r io.Reader) (err error) { before, err = parseNfsd(r); return }},
		{"nfs.server.after", func(r io.Reader) (err error) { after, err = parseNfsd(r); return }},
		{"md5sums.server", func(r io.Reader) (err error) { t.Files, err = parseSums(r); return }},
		{"workload.log", func(r io.Reader) (err error) { t.Logged, err = parseSums(r); return }},
		{"workload.log", func(r io.Reader) (err error) { t.Reshaped, err = parseReshaped(r); return }},
	}
	for _, st := range steps {
		if err := read(st.name, st.f); err != nil {
			return nil, err
		}
	}
	t.merge(c, s)
	t.Nfsd = after.since(before)
	for _, m := range t.Mounts {
		m.attribute(t)
	}
	return t, nil
}

// Trim drops what a comparison does not need: the sums of empty files.
func (t *Truth) Trim() {
	t.Files = slices.DeleteFunc(t.Files, func(f FileSum) bool { return f.MD5 == emptyMD5 })
}
