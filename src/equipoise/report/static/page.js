"use strict";

// Light or dark: the reader's system decides until the button is used.
const theme = {
  system: window.matchMedia("(prefers-color-scheme: dark)"),
  chosen: null,
  listeners: [],
  get now() { return this.chosen ?? (this.system.matches ? "dark" : "light"); },
  apply() {
    document.documentElement.dataset.theme = this.now;
    const button = document.getElementById("theme");
    button.textContent = this.now === "dark" ? "Light colours" : "Dark colours";
    button.hidden = false;
    this.listeners.forEach((listener) => listener(this.now));
  },
  toggle() {
    this.chosen = this.now === "dark" ? "light" : "dark";
    this.apply();
  },
};

// What is folded away on the screen is printed in full.
const folded = {
  opened: [],
  open() {
    this.opened = [...document.querySelectorAll("details:not([open])")];
    this.opened.forEach((part) => { part.open = true; });
  },
  close() {
    this.opened.forEach((part) => { part.open = false; });
    this.opened = [];
  },
};

function dataOf(element) {
  return JSON.parse(element.textContent);
}

document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("theme").addEventListener("click", () => theme.toggle());
  theme.system.addEventListener("change", () => theme.apply());
  theme.apply();
  window.addEventListener("beforeprint", () => folded.open());
  window.addEventListener("afterprint", () => folded.close());
});
