package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// known licences are recognised by a set of sentences that only they contain, most specific first. All of
// them are permissive: they require only a notice.
var known = []struct {
	id        string // of SPDX
	sentences []string
}{
	{"Apache-2.0", []string{"apache license version 2.0", "grant of patent license", "redistribution. you may reproduce and distribute"}},
	{"BSD-3-Clause", []string{
		"redistribution and use in source and binary forms, with or without modification, are permitted",
		"redistributions in binary form must reproduce", "may be used to endorse or promote products derived",
	}},
	{"BSD-2-Clause", []string{
		"redistribution and use in source and binary forms, with or without modification, are permitted",
		"redistributions in binary form must reproduce",
	}},
	{"MIT", []string{
		"permission is hereby granted, free of charge, to any person obtaining a copy",
		"the above copyright notice and this permission notice shall be included in all copies",
		"the software is provided \"as is\"",
	}},
	{"ISC", []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee is hereby granted"}},
}

// refused are words of licences that ask for more than a notice. A file that has
// one needs a review, whatever else it says.
var refused = []string{
	"gnu general public", "gnu lesser", "gnu library general", "gnu affero", "gpl", "mozilla public license", "eclipse public", "common development and distribution",
	"creative commons", "cc-by", "commons clause", "business source license", "server side public license", "elastic license", "non-commercial",
	"noncommercial", "json license", "shall be used for good", "european union public",
}

// reviewed are files that were read by a person, by the SHA-256 of their text: a change needs another look.
var reviewed = map[string]struct{ sum, id string }{
	// A choice of BSD or GPL 2: it is the former that is taken.
	"kernel.org/pub/linux/libs/security/libcap/cap/License": {"18eb30b662ed0abe", "BSD-3-Clause"},
	"kernel.org/pub/linux/libs/security/libcap/psx/License": {"279fa656c62857d4", "BSD-3-Clause"},
}

var spaces = regexp.MustCompile(`[\s*#>/]+`)

// plain is a text in lower case, with one space between words.
func plain(s string) string {
	s = strings.NewReplacer("“", `"`, "”", `"`, "``", `"`, "''", `"`, "’", "'").Replace(strings.ToLower(s))
	return strings.TrimSpace(strings.ReplaceAll(spaces.ReplaceAllString(s, " "), "apache license, version", "apache license version"))
}

// sum is how a text is pinned.
func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:8])
}

// classify returns the SPDX identifier of a licence.
func classify(where, text string) (string, error) {
	if r, ok := reviewed[where]; ok {
		if r.sum != sum(text) {
			return "", fmt.Errorf("%s has changed since it was reviewed: its sum is %s now", where, sum(text))
		}
		return r.id, nil
	}
	p := plain(text)
	for _, word := range refused {
		if containsWord(p, word) {
			return "", fmt.Errorf("%s speaks of %q: read it, and enter it as reviewed (sum %s) or do without the module", where, word, sum(text))
		}
	}
	var ids []string
	for _, k := range known {
		all := true
		for _, s := range k.sentences {
			all = all && strings.Contains(p, s)
		}
		// A licence with three clauses has the sentences of that with two.
		if all && !(k.id == "BSD-2-Clause" && strings.Contains(strings.Join(ids, " "), "BSD-3-Clause")) {
			ids = append(ids, k.id)
		}
	}
	if len(ids) == 0 {
		return "", fmt.Errorf("%s: no licence that is known (sum %s)", where, sum(text))
	}
	return strings.Join(ids, " AND "), nil
}

// containsWord finds a word that no letter continues with.
func containsWord(s, word string) bool {
	letter := func(i int) bool { return i >= 0 && i < len(s) && s[i] >= 'a' && s[i] <= 'z' }
	for from := 0; ; {
		i := strings.Index(s[from:], word)
		if i < 0 {
			return false
		}
		i += from
		if !letter(i-1) && !letter(i+len(word)) {
			return true
		}
		from = i + 1
	}
}
