//! Check characters: one wrong or two swapped characters are noticed.
