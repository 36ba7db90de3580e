package planner

import (
	"bytes"
	"testing"
)

// TestSpillRoom: what is held on disk takes at most half of the room that it takes as text.
func TestSpillRoom(t *testing.T) {
	s := store{dir: t.TempDir()}
	line := []byte(`{"op":"READ","object":17,"offset":4096,"count":4096}` + "\n")
	b := bytes.Repeat(line, 100_000)
	if _, err := s.Write(b); err != nil {
		t.Fatal(err)
	}
	defer s.file.Close()
	if err := s.zstd.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err := s.file.Stat(); err != nil || st.Size() > int64(len(b))/2 {
		t.Errorf("%d bytes on disk for %d: %v", st.Size(), len(b), err)
	}
}
