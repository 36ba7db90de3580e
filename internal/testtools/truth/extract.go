package truth

import (
	"bufio"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ManifestFile is one line of manifest.ndjson, which `rpcrdma-dump
// --extract-data DIR` writes: what was seen of one file's contents.
type ManifestFile struct {
	Path         string `json:"path"`
	FileHandle   string `json:"filehandle"`
	Size         uint64 `json:"size"`    // bytes
	Covered      uint64 `json:"covered"` // bytes of these that were seen
	MD5          string `json:"md5"`
	Complete     bool   `json:"complete"`
	ReadBytes    uint64 `json:"read_bytes"`
	WrittenBytes uint64 `json:"written_bytes"`
}

// emptyMD5 is the sum of no bytes.
const emptyMD5 = "d41d8cd98f00b204e9800998ecf8427e"

// mountPoint is where the workloads see the export.
const mountPoint = "/mnt/"

// CompareExtract checks the files below dir, which the decoder has put
// together from the data it saw, against the export at the end of the run and
// the sums that the workload printed. It adds to r.
func CompareExtract(t *Truth, dir string, r *Report) error {
	f, err := os.Open(filepath.Join(dir, "manifest.ndjson"))
	if err != nil {
		return err
	}
	defer f.Close()
	var list []ManifestFile
	s := bufio.NewScanner(f)
	s.Buffer(make([]byte, 64<<10), 1<<20)
	for n := 1; s.Scan(); n++ {
		if strings.TrimSpace(s.Text()) == "" {
			continue
		}
		var m ManifestFile
		if err := json.Unmarshal(s.Bytes(), &m); err != nil {
			return fmt.Errorf("manifest.ndjson line %d: %w", n, err)
		}
		list = append(list, m)
	}
	if err := s.Err(); err != nil {
		return err
	}
	e := extract{t: t, dir: dir, r: r, whole: make(map[string]bool)}
	for _, m := range list {
		if err := e.file(m); err != nil {
			return err
		}
	}
	e.wanted()
	return nil
}

type extract struct {
	t     *Truth
	dir   string
	r     *Report
	whole map[string]bool // paths and sums of complete files
}

func (e *extract) differ(what, want, got, reason string) {
	f := Finding{Kind: KindMD5, What: what, Want: want, Got: got, Reason: reason}
	if reason != "" {
		e.r.Explained = append(e.r.Explained, f)
	} else {
		e.r.Mismatches = append(e.r.Mismatches, f)
	}
}

// exported turns the name of a file into its path relative to the export.
func exported(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	return strings.TrimPrefix(name, "export/")
}

func (e *extract) file(m ManifestFile) error {
	name := exported(m.Path)
	if !m.Complete {
		if m.Covered > m.Size {
			e.differ("covered bytes of "+m.Path, fmt.Sprintf("at most %d", m.Size), fmt.Sprint(m.Covered), "")
		}
		return nil
	}
	e.r.Checks++
	if m.Covered != m.Size {
		e.differ("covered bytes of complete file "+m.Path, fmt.Sprint(m.Size), fmt.Sprint(m.Covered), "")
	}
	sum, size, err := sumFile(filepath.Join(e.dir, filepath.FromSlash(path.Clean("/"+m.Path))))
	if err != nil {
		return err
	}
	if sum != m.MD5 || size != m.Size {
		e.differ("manifest and file "+m.Path, fmt.Sprintf("%s %d", m.MD5, m.Size), fmt.Sprintf("%s %d", sum, size), "")
	}
	e.whole[name], e.whole[sum] = true, true
	want, ok := e.final(name)
	logged := slices.ContainsFunc(e.t.Logged, func(f FileSum) bool { return f.MD5 == sum })
	switch {
	case ok && want == sum:
		e.r.Files++
	case logged:
		// The workload printed this sum: it read or wrote these contents,
		// and the file is gone or was changed later.
		e.r.Files++
	case sum == emptyMD5:
		// Nearly every file is empty at some time.
	case ok:
		e.differ("contents of "+m.Path, want, sum, e.changed(name))
	default:
		e.differ("contents of "+m.Path, "no such file at the end", sum, "removed or renamed before the end, and its sum was not printed")
	}
	return nil
}

func (e *extract) final(name string) (string, bool) {
	for _, f := range e.t.Files {
		if f.Path == name {
			return f.MD5, true
		}
	}
	return "", false
}

// changed gives the reason why a file may have other contents at the end than
// the client saw.
func (e *extract) changed(name string) string {
	if e.t.Scenario["WORKLOAD"] == "recall" && strings.HasPrefix(name, "deleg") {
		return "the server's own processes change this file"
	}
	if slices.Contains(e.t.Reshaped, name) {
		return "the workload changed its size or holes without writing"
	}
	return ""
}

// wanted checks that what the workload read or wrote and printed the sum of is
// among the complete files. Sums of files below the mount point are meant, and
// of those only the ones with the contents that the file had at the end.
func (e *extract) wanted() {
	sc := e.t.Scenario
	for _, l := range e.t.Logged {
		name, ok := strings.CutPrefix(l.Path, mountPoint)
		final, exists := e.final(name)
		if !ok || !exists || final != l.MD5 {
			continue
		}
		e.r.Checks++
		if e.whole[name] || e.whole[l.MD5] {
			continue
		}
		reason := ""
		switch {
		case sc["SEC"] == "krb5p":
			reason = "sec=krb5p encrypts the data"
		case sc["CAPTURE_AT"] == "midstream":
			reason = "a capture from mid-stream may lack a part"
		case sc["SNAPLEN"] != "" && len(sc["SNAPLEN"]) < 5:
			reason = "the snap length cut the data"
		}
		e.differ("complete contents of "+name, l.MD5, "not extracted", reason)
	}
}

func sumFile(name string) (sum string, size uint64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := md5.New()
	n, err := io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), uint64(n), err
}
