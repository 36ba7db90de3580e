package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

const (
	mit = `Permission is hereby granted, free of charge, to any person obtaining a copy of it.
The above copyright notice and this permission notice shall be included in
all copies. THE SOFTWARE IS PROVIDED "AS IS".`
	bsd2 = `// Redistribution and use in source and binary forms, with or without
// modification, are permitted provided that: * Redistributions in binary form must reproduce …`
	bsd3 = bsd2 + ` nor the names of its contributors may be used to endorse or promote products derived from it`
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		where, text, want string // want "" is an error
	}{
		{"m/LICENSE", mit, "MIT"},
		{"m/LICENSE", bsd2, "BSD-2-Clause"},
		{"m/LICENSE", bsd3, "BSD-3-Clause"},
		{"m/LICENSE", bsd3 + "\n\n" + mit, "BSD-3-Clause AND MIT"},
		{"m/LICENSE", "All rights reserved.", ""},
		{"m/LICENSE", "", ""},
		{"m/LICENSE", mit + "\nThe fonts are under the GNU Lesser General Public License.", ""},
		{"m/LICENSE", mit + "\nPictures: CC-BY 3.0", ""},
		{"m/LICENSE", mit + "\n\"Commons Clause\" License Condition v1.0", ""},
		{"m/LICENSE", strings.Replace(mit, "is hereby granted, free of charge,", "may be bought", 1), ""},
		{"kernel.org/pub/linux/libs/security/libcap/cap/License", "something else", ""},
	} {
		id, err := classify(c.where, c.text)
		if id != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q: %q, %v, want %q", c.where, c.text, id, err, c.want)
		}
	}
}

func TestWrite(t *testing.T) {
	var b bytes.Buffer
	good := module{"example.org/a", "v1.0.0", []file{{"LICENSE", mit}, {"NOTICE", "By us."}}}
	same := module{"example.org/b", "v1.0.0", []file{{"LICENSE", mit}}}
	if err := write(&b, []module{good, same}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"example.org/a v1.0.0", "By us.", "The same text as that of example.org/a v1.0.0, LICENSE above."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	b.Reset()
	err := write(&b, []module{good, {"example.org/c", "v1", nil}, {"example.org/d", "v1", []file{{"NOTICE", mit}}}, {"example.org/e", "v1", []file{{"sub/LICENSE", "no"}}}})
	if err == nil || b.Len() > 0 || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("%v", err)
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"LICENSE": true, "License": true, "LICENCE.md": true, "COPYING": true, "NOTICE.txt": true, "LICENSE-APACHE": true, "LICENSE.BSD": true,
		"license.go": false, "licenses_test.go": false, "README.md": false, "copyingfree.go": false,
	} {
		if isNotice(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// TestDrift compares the file in the repository with what is generated. With -short, it only looks whether the file names the
// modules of rpcrdma-dump: those of all programs need not be on the machine. CI has a step for the comparison.
func TestDrift(t *testing.T) {
	if testing.Short() {
		defer func(all map[string][]string) { programs = all }(programs)
		programs = map[string][]string{".": {"./cmd/rpcrdma-dump"}}
	}
	modules, err := list("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) < 20 {
		t.Errorf("only %d modules", len(modules))
	}
	var b bytes.Buffer
	if err := write(&b, modules); err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		for _, m := range modules {
			if name := strings.TrimSpace(m.path + " " + m.version); !bytes.Contains(have, []byte(name+"\n")) {
				t.Errorf("NOTICE lacks %s: go generate ./internal/notices", name)
			}
		}
		return
	}
	if !bytes.Equal(have, b.Bytes()) {
		t.Error("NOTICE is not what is generated: go generate ./internal/notices")
	}
}
