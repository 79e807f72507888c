package archtest

import (
	"bytes"
	"fmt"
	"io/fs"
)

const largestText = 1 << 20 // bytes; no text of ours is larger

// Words reports each of words in the text files of fsys, whatever their kind and however deep, except in .git. A word that
// only goes on with a longer name does not count: of "/home/", that is the one in "example.com/home/".
func Words(fsys fs.FS, words []string) ([]Finding, error) {
	var found []Finding
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > largestText {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		found = append(found, wordsIn(name, text, words)...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("archtest: searching for words: %w", err)
	}
	return found, nil
}

func wordsIn(name string, text []byte, words []string) (found []Finding) {
	if bytes.IndexByte(text, 0) >= 0 {
		return nil // not a text
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		for _, w := range words {
			if holds(line, w) {
				found = append(found, Finding{fmt.Sprintf("%s:%d", name, i+1), name + ": " + w, "mentions " + w})
			}
		}
	}
	return found
}

// holds finds word in line where nothing of a name or a path stands before it.
func holds(line []byte, word string) bool {
	for at := 0; ; at++ {
		i := bytes.Index(line[at:], []byte(word))
		if i < 0 {
			return false
		}
		at += i
		if at == 0 || !partOfName(line[at-1]) {
			return true
		}
	}
}

func partOfName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}
